-- Runs that killed too many leaders are given up, with why: from here on nothing of them is claimed. Their units are set aside in
-- pages (give_up_set_aside.sql), however many there are. Fenced. ?1 runs, ?2 why
update run set why = ?2 where id in (select value from json_each(?1)) and state in ('planning', 'open') and why is null;
