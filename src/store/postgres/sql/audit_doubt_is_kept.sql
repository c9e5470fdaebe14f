-- Audit: instructions whose state forgets that a try's outcome is unknown.
-- $1 examples
with bad as (
    select format('instruction %s is %s and not in doubt', i.idempotency_key, i.state) as what
      from bursar.instruction i
     where not i.in_doubt
       and (i.state = 'unknown' or (i.state = 'held' and i.reason = 'unknown'))
    union all
    select format('instruction %s is in doubt, not idempotent, and %s', i.idempotency_key, i.state)
      from bursar.instruction i
     where i.in_doubt and not i.idempotent and i.state in ('pending', 'sending')
    union all
    select format('instruction %s is in doubt and rejected, by nobody''s word', i.idempotency_key)
      from bursar.instruction i
     where i.in_doubt and i.state = 'rejected' and i.resolved_act_id is null
    union all
    select format('instruction %s was tried %s times and has no time of its first', i.idempotency_key, i.attempts)
      from bursar.instruction i
     where i.first_sent_at is null
       and (i.in_doubt or i.state = 'sending' or (i.kind = 'call' and i.state not in ('pending', 'sending')))
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
