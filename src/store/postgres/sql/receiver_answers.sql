-- Fenced (record). A receiver answered as one that works: a stop that ends by itself is over. Answers its refusals in a row;
-- no row where there was nothing to change.
-- $1 origin, $2 whether it paid since the refusals before, $3 refusals since, $4 term
insert into bursar.receiver as r (origin, refusals, term)
values ($1, $3, $4)
on conflict (origin) do update
   set refusals = case when $2 then excluded.refusals else r.refusals + excluded.refusals end,
       stopped_at = case when r.needs_resume then r.stopped_at end,
       reason = case when r.needs_resume then r.reason end,
       detail = case when r.needs_resume then r.detail end,
       next_probe_at = case when r.needs_resume then r.next_probe_at end,
       probes = case when r.needs_resume then r.probes else 0 end,
       term = $4
 where r.refusals > 0 or r.stopped_at is not null or excluded.refusals > 0
returning r.refusals;
