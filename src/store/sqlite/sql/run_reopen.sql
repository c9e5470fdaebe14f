-- The run of retried units has work again. Deaths before the retry count no more; who works on one that is open still does.
update run
   set state = case when was_planning then 'planning' else 'open' end, was_planning = 0, finished_at = null,
       why = null, deaths = 0,
       worked_term = case when state = 'open' then worked_term end,
       worked_at = case when state = 'open' then worked_at end
 where id = ?1 and (state = 'complete_set_aside' or (state = 'open' and why is null));
