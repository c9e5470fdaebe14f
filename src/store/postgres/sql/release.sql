-- A planned end: nobody died over these runs.
update bursar.run r set worked_term = null, worked_at = null
 where r.election = $1 and r.worked_term = $2 and r.state in ('planning', 'open');
