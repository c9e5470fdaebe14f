-- Audit: idempotency keys, and payouts of one unit, that stand twice.
-- ?1 examples
with bad as (
    select format('key %s stands %s times', i.idempotency_key, count(*)) as what
      from instruction i
     group by i.idempotency_key
    having count(*) > 1
    union all
    select format('unit %s has %s instructions of kind %s and generation %s', i.unit_id, count(*), i.kind, i.generation)
      from instruction i
     group by i.unit_id, i.kind, i.generation
    having count(*) > 1
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
