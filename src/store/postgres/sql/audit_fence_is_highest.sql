-- Audit: fences that are not the highest claim that was accepted.
-- $1 examples
with highest as (
    select distinct on (h.election) h.election, h.term, h.tenure_id
      from bursar.term_history h
     order by h.election, h.term desc
), bad as (
    select format('%s: the fence is at term %s, the highest accepted is %s', coalesce(f.election, h.election),
                  coalesce(f.term::text, 'none'), coalesce(h.term::text, 'none')) as what
      from bursar.fence f
      full join highest h on h.election = f.election
     where (f.term is distinct from h.term or f.tenure_id is distinct from h.tenure_id)
       -- An election that was halted before anybody led.
       and not (h.term is null and f.term = 0)
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
