-- Fenced (begin). Payouts of a job of an election that are due, with what the rules of the job say of each: send it, look it up,
-- or why it is held.
-- Safe because: nobody else writes until the transaction's end. Nothing is sent whose key the receiver may have forgotten, in
-- doubt or not; a doubt at a receiver that is not idempotent, or at another one than the job's now (by its whole address), is
-- never sent again; what its run left in the store for others to take is sent only once a person has cleared it.
-- The order of the cases: what a person said first, then what can only be asked, then what nobody can know any more.
-- ?1 election, ?2 origin, ?3 limit, ?4 job, ?5 idempotent, ?6 looked up, ?7 validity of a key, ?8 time-out (microseconds),
-- ?9 maxima by currency, ?10 address
select i.id,
       case
           when i.on_hold then 'merchant'
           when i.over then 'over_limit'
           when i.left_in_store then 'left_in_store'
           when not i.in_doubt and not i.expired then 'send'
           when not i.in_doubt then 'forgotten'
           when i.receiver is not ?2 or coalesce(i.receiver_url <> ?10, 0) then 'moved'
           when i.again and not i.expired and i.asks then 'ask_then_send'
           when i.again and not i.expired then 'send'
           when i.asks and i.expired then 'ask_last'
           when i.asks then 'ask'
           when i.expired then 'expired'
           else 'unknown'
       end as verdict,
       i.left_before
  from (
       select d.id, d.in_doubt, d.receiver, d.receiver_url, d.next_attempt_at, d.first_sent_at is not null as left_before,
              exists (select 1 from merchant_hold h where h.merchant = d.merchant) as on_hold,
              coalesce(?9 ->> d.currency < d.amount, 0) and d.release <> 'released' and d.attempts = 0 as over,
              not d.cleared and not exists (select 1 from run r
                                             where r.id = d.run_id
                                               and json_type(r.definition, '$.handler.ledger.payout.http') = 'object') as left_in_store,
              d.idempotent and ?5 as again,
              d.looks_up and ?6 as asks,
              coalesce(min(coalesce(d.key_valid_until, d.first_sent_at + ?7), d.first_sent_at + ?7) - 2 * ?8 < c.now, 0) as expired
         from instruction d, clock c
        where d.job_id = ?4
          and d.election = ?1
          and d.kind = 'payout'
          and d.state in ('pending', 'unknown')
          and d.release <> 'waiting'
          and (d.next_attempt_at is null or d.next_attempt_at <= c.now)
        order by d.next_attempt_at, d.id
        limit ?3) i
 order by i.next_attempt_at, i.id;
