-- Fenced (begin). Locks payouts of an election that are due, job by job, with what the rules of its job say of each: send it,
-- look it up, or why it is held. Those that are locked by somebody else are passed over, not waited for.
-- Safe because: the row lock is the claim, and under READ COMMITTED a row that was changed meanwhile is looked at again and
-- left out. Nothing is sent whose key the receiver may have forgotten, in doubt or not; a doubt at a receiver that is not idempotent, or at another one than the job's now (by its whole address),
-- is never sent again; what its run left in the store for others to take is sent only once a person has cleared it.
-- The order of the cases: what a person said first, then what can only be asked, then what nobody can know any more.
-- $1 election, $2 origin, $3 limit
-- $4 jobs, $5 idempotent, $6 looked up, $7 validity of a key, $8 time-out (milliseconds), $9 maxima by currency, $10 addresses
select i.id,
       case
           when i.on_hold then 'merchant'
           when i.over then 'over_limit'
           when i.left_in_store then 'left_in_store'
           when not i.in_doubt and not i.expired then 'send'
           when not i.in_doubt then 'forgotten'
           when i.receiver is distinct from $2 or i.receiver_url <> t.url then 'moved'
           when i.again and not i.expired and i.asks then 'ask_then_send'
           when i.again and not i.expired then 'send'
           when i.asks and i.expired then 'ask_last'
           when i.asks then 'ask'
           when i.expired then 'expired'
           else 'unknown'
       end as verdict,
       i.left_before
  from unnest($4::bigint[], $5::boolean[], $6::boolean[], $7::bigint[], $8::bigint[], $9::jsonb[], $10::text[])
       with ordinality as t (job_id, idempotent, looks_up, valid_ms, timeout_ms, maxima, url, place)
 cross join lateral (
       select d.id, d.in_doubt, d.receiver, d.receiver_url, d.first_sent_at is not null as left_before,
              exists (select from bursar.merchant_hold h where h.merchant = d.merchant) as on_hold,
              coalesce((t.maxima ->> d.currency)::bigint < d.amount, false) and d.release <> 'released' and d.attempts = 0 as over,
              not d.cleared and not exists (select from bursar.run r
                                             where r.id = d.run_id
                                               and jsonb_typeof(r.definition #> '{handler,ledger,payout,http}') = 'object') as left_in_store,
              d.idempotent and t.idempotent as again,
              d.looks_up and t.looks_up as asks,
              coalesce(least(d.key_valid_until, d.first_sent_at + t.valid_ms * interval '1 millisecond')
                         - 2 * t.timeout_ms * interval '1 millisecond' < clock_timestamp(), false) as expired
         from bursar.instruction d
        where d.job_id = t.job_id
          and d.election = $1
          and d.kind = 'payout'
          and d.state in ('pending', 'unknown')
          and d.release <> 'waiting'
          and (d.next_attempt_at is null or d.next_attempt_at <= clock_timestamp())
        order by d.next_attempt_at nulls first, d.id
        limit $3
          for update skip locked) i
 order by t.place
 limit $3;
