-- Fenced (begin). Ends the planning of a run: only from now on can it be worked on and finish. ?1 run, ?2 election
update run set state = 'open' where id = ?1 and election = ?2 and state = 'planning' and why is null;
