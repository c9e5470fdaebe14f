-- The jobs of an election, in the order of names. Inside a fenced transaction.
select j.id, j.name, j.definition, j.fingerprint, j.evaluated_until, j.paused_reason, j.pauses
  from job j
 where j.election = ?1 and j.removed_at is null
 order by j.name;
