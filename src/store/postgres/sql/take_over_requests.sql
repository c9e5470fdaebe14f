-- What operators asked for of a job, and nobody has executed yet, goes over to another election with it. Fenced; the gates of both
-- are held. Once before the job's row is locked, for whoever executes a request locks that first, and once after, for what was being filed. The retry of units stays with their run.
-- $1 job, $2 from, $3 to
update bursar.request q
   set election = $3
 where q.election = $2 and q.state = 'waiting' and q.kind ->> 'job' = $1;
