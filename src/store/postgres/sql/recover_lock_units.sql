-- Locks, in the order of ids, the units of instructions that lower terms left on the wire. Inside a fenced transaction.
select u.id
  from bursar.unit u
 where u.id in (select i.unit_id from bursar.instruction i
                 where i.election = $1 and i.state = 'sending' and coalesce(i.sending_term, 0) < $2)
 order by u.id
   for update;
