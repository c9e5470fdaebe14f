-- Payouts of an election that are not final, by state, and the age of the oldest that could be sent: pending, by a job that sends
-- over HTTP now, waiting for no release and for no merchant on hold. Calls are told of as their units.
-- $1 election
select i.state, count(*) as instructions,
       coalesce(greatest(extract(epoch from clock_timestamp() - min(i.created_at) filter (
           where i.state = 'pending' and i.release <> 'waiting' and h.merchant is null
             and jsonb_typeof(j.definition #> '{handler,ledger,payout,http}') = 'object')), 0), 0)::bigint as oldest_seconds
  from bursar.instruction i
  join bursar.job j on j.id = i.job_id
  left join bursar.merchant_hold h on h.merchant = i.merchant
 where i.election = $1
   and i.kind = 'payout'
   and i.state in ('pending', 'sending', 'unknown', 'held')
 group by i.state;
