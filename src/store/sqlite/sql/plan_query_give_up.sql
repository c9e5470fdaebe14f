-- Fenced (begin). Gives a run up that cannot be planned, with why: what was planned of it is withdrawn in pages.
-- Safe because: only a run that is still planning is given up. ?1 run, ?2 election, ?3 why
update run set why = ?3 where id = ?1 and election = ?2 and state = 'planning' and why is null;
