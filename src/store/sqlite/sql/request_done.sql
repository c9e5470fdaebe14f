-- What was made of a request.
-- ?1 request, ?2 state, ?3 result, ?4 term
update request set state = ?2, result = ?3, executed_at = (select c.now from clock c), term = ?4
 where id = ?1 and state = 'waiting';
