-- Tries of a unit's instructions, the newest, in the order of their instructions and numbers.
-- ?1 unit, ?2 limit
select t.idempotency_key, t.attempt, t.asked, t.term, t.receiver, t.began_at, t.ended_at, t.outcome, t.detail
  from (select i.id, i.idempotency_key, y.attempt, y.asked, y.term, y.receiver, y.began_at, y.ended_at, y.outcome, y.detail
          from instruction i
          join instruction_try y on y.instruction_id = i.id
         where i.unit_id = ?1
         order by i.id desc, y.attempt desc
         limit ?2) t
 order by t.id, t.attempt;
