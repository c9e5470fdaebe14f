-- The store's time and what waits in an election, and how many jobs it has. Inside a fenced transaction.
select (select now from clock) as now,
       (select count(*) from request q where q.election = ?1 and q.state = 'waiting') as requests,
       (select count(*) from run r where r.election = ?1 and r.state in ('planning', 'open')) as open_runs,
       (select count(*) from job j where j.election = ?1 and j.removed_at is null) as jobs;
