-- How a term came about and what its leader took over; unfenced, for people. The first note stays. The win is placed on this
-- clock, and never after the acceptance that followed it.
-- $1 election, $2 term, $3 tenure, $4 handed over, $5 microseconds since the win, $6 microseconds that the place was seen free
-- $7 runs taken over, $8 of those set aside, $9 outcomes unknown
update bursar.term_history h
   set handed_over = $4,
       won_at = w.won_at,
       stood_at = w.won_at - $6::bigint * interval '1 microsecond',
       taken_runs = $7,
       taken_set_aside = $8,
       taken_unknown = $9
  from (select least(n.accepted_at, clock_timestamp() - $5::bigint * interval '1 microsecond') as won_at
          from bursar.term_history n
         where n.election = $1 and n.term = $2 and n.tenure_id = $3) w
 where h.election = $1 and h.term = $2 and h.tenure_id = $3 and h.won_at is null;
