-- Fenced (record). Those of the tries named that are on the wire under this term, of units that are pending.
-- Safe because: a try is recorded only while it is on the wire under this term and is the one that is named, so that
-- recording it twice records it once; named twice, the first counts.
-- ?1 run, ?2 election, ?3 term, ?4 tries: [instruction, attempt]
select min(g.key) as place, i.id, i.unit_id
  from json_each(?4) g
  join instruction i on i.id = g.value ->> 0
  join unit u on u.id = i.unit_id
 where i.run_id = ?1
   and i.election = ?2
   and i.kind = 'call'
   and i.state = 'sending'
   and i.sending_term = ?3
   and i.attempts = g.value ->> 1
   and u.run_id = ?1
   and u.election = ?2
   and u.state = 'pending'
 group by i.id, i.unit_id;
