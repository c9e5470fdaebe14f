-- Runs that killed too many leaders are given up, with why: from here on nothing of them is claimed. Their units are set aside in
-- pages (give_up_set_aside.sql), however many there are.
-- $1 runs, $2 why
update bursar.run r set why = $2 where r.id = any ($1) and r.state in ('planning', 'open') and r.why is null;
