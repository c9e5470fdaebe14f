-- A planned end: nobody died over these runs. ?1 election, ?2 term
update run set worked_term = null, worked_at = null
 where election = ?1 and worked_term = ?2 and state in ('planning', 'open');
