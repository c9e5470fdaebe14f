-- Audit: instructions on the wire under a term that is not in force.
-- Promotion turns them into unknown before anything else; a violation stands only while one is under way. ?1 examples
with bad as (
    select format('instruction %s of %s is sending under term %s, term %s is in force', i.idempotency_key, i.election,
                  coalesce(i.sending_term, 'none'), coalesce(f.term, 'none')) as what
      from instruction i
      left join fence f on f.election = i.election
     where i.state = 'sending'
       and i.sending_term is distinct from f.term
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
