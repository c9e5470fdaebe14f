-- The run of retried units has work again. Deaths before the retry count no more; who works on one that is open still does.
update bursar.run r
   set state = case when r.was_planning then 'planning' else 'open' end, was_planning = false, finished_at = null,
       why = null, deaths = 0,
       worked_term = case when r.state = 'open' then r.worked_term end,
       worked_at = case when r.state = 'open' then r.worked_at end
 where r.id = $1 and (r.state = 'complete_set_aside' or (r.state = 'open' and r.why is null));
