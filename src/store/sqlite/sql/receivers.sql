-- Receivers that are stopped, or that refused the last of what they were sent.
select r.origin, r.stopped_at, r.reason, r.detail, r.refusals, r.needs_resume, r.next_probe_at, r.term
  from receiver r
 where r.stopped_at is not null or r.refusals > 0
 order by r.origin;
