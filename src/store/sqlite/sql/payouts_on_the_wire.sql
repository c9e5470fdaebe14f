-- Fenced (record). Those of the tries named that are on the wire under this term (a look-up: whose outcome is still unknown).
-- Safe because: a try is recorded only where it is the one that is named, so that recording it twice records it once; named
-- twice, the first counts. ?1 election, ?2 term, ?3 tries: [instruction, try, looked up]
select min(g.key) as place, i.id, i.unit_id, i.generation, i.in_doubt, i.merchant, i.currency, i.amount, i.job_id, i.run_id, r.job
  from json_each(?3) g
  join instruction i on i.id = g.value ->> 0
  join run r on r.id = i.run_id
 where i.election = ?1
   and i.kind = 'payout'
   and i.attempts = g.value ->> 1
   and case when g.value ->> 2 then i.state = 'unknown' else i.state = 'sending' and i.sending_term = ?2 end
 group by i.id
 order by i.id;
