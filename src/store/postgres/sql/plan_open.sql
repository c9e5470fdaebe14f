-- Fenced (begin). Ends the planning of a run: only from now on can it be worked on and finish.
-- Safe because: only a run that is planning is opened; the row lock makes a second opener see that it is open.
-- $1 run, $2 election
update bursar.run r set state = 'open' where r.id = $1 and r.election = $2 and r.state = 'planning' and r.why is null;
