-- What was made of a request; its row is locked.
update bursar.request set state = $2, result = $3, executed_at = clock_timestamp(), term = $4
 where id = $1 and state = 'waiting';
