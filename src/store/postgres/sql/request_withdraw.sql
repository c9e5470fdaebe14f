-- Takes a request back that still waits. Safe beside a leader that executes it: either locks the row, and whoever is second
-- finds it answered. No term: nobody has executed it. No row: it was answered before, or there is none.
-- $1 request, $2 result
update bursar.request set state = 'refused', result = $2, executed_at = clock_timestamp()
 where id = $1 and state = 'waiting'
returning election;
