-- Fenced (begin). Gives a run up that cannot be planned, with why: what was planned of it is withdrawn in pages.
-- Safe because: only a run that is still planning is given up.
-- $1 run, $2 election, $3 why
update bursar.run r set why = $3 where r.id = $1 and r.election = $2 and r.state = 'planning' and r.why is null;
