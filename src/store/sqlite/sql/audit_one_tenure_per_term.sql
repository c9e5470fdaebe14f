-- Audit: terms that were accepted from more than one tenure.
-- ?1 examples
with bad as (
    select format('%s term %s: accepted from %s tenures', h.election, h.term, count(distinct h.tenure_id)) as what
      from term_history h
     group by h.election, h.term
    having count(distinct h.tenure_id) > 1
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
