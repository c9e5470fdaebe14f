-- A job's row with its definition, locked: it is about to go over to another election. Fenced; the gates of both are held.
-- $1 job
select j.id, j.election, j.definition, j.removed_at is not null as removed
  from bursar.job j
 where j.name = $1
   for no key update;
