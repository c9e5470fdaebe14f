-- Instructions that have left and have no outcome yet, the term in force, and how long this transaction has lasted: all but
-- the wait for the lock is next to nothing.
select (select count(*) from bursar.instruction i where i.election = $1 and i.state = 'sending') as on_the_wire,
       (select f.term from bursar.fence f where f.election = $1) as term,
       (extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000)::bigint as waited_ms;
