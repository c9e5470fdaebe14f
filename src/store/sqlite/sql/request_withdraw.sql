-- Takes a request back that still waits. Safe beside a leader that executes it: of two that write, one waits for the other, and
-- finds it answered. No term: nobody has executed it. No row: it was answered before, or there is none.
-- ?1 request, ?2 result
update request set state = 'refused', result = ?2, executed_at = (select c.now from clock c)
 where id = ?1 and state = 'waiting'
returning election;
