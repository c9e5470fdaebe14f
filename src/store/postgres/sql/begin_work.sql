-- This term works on the run, so that a successor can count deaths. Fenced: the gate is held shared, and a lower term's
-- note is in any case overwritten, a higher one's never there.
update bursar.run r set worked_term = $2, worked_at = clock_timestamp()
 where r.election = $1 and r.id = $3 and r.state in ('planning', 'open') and r.worked_term is distinct from $2;
