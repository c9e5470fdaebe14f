-- Fenced (record). Stops a receiver, durably. One that is stopped already keeps when it is tried next; its reason is the newest,
-- unless only an operator ends the stop.
-- $1 origin, $2 reason, $3 detail, $4 term, $5 the wait before the first try, milliseconds, $6 refusals in a row, $7 whether only
-- an operator ends it
insert into bursar.receiver as r (origin, stopped_at, reason, detail, term, next_probe_at, refusals, needs_resume)
values ($1, clock_timestamp(), $2, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond', $6, $7)
on conflict (origin) do update
   set stopped_at = coalesce(r.stopped_at, clock_timestamp()),
       reason = case when r.needs_resume then r.reason else excluded.reason end,
       detail = case when r.needs_resume then r.detail else excluded.detail end,
       term = excluded.term,
       next_probe_at = coalesce(r.next_probe_at, excluded.next_probe_at),
       refusals = greatest(r.refusals, excluded.refusals),
       needs_resume = r.needs_resume or excluded.needs_resume;
