-- Audit: fences that are not the highest claim that was accepted.
-- ?1 examples
with ranked as (
    select h.election, h.term, h.tenure_id, row_number() over (partition by h.election order by h.term desc) as rank
      from term_history h
), highest as (
    select r.election, r.term, r.tenure_id from ranked r where r.rank = 1
), bad as (
    select format('%s: the fence is at term %s, the highest accepted is %s', coalesce(f.election, h.election),
                  coalesce(f.term, 'none'), coalesce(h.term, 'none')) as what
      from fence f
      full join highest h on h.election = f.election
     where (f.term is distinct from h.term or f.tenure_id is distinct from h.tenure_id)
       -- An election that was halted before anybody led.
       and not (h.term is null and f.term = 0)
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
