-- What operators asked for of a job, and nobody has executed yet, goes over to another election with it. Fenced. The retry of units
-- stays with their run.
-- ?1 job, ?2 from, ?3 to
update request
   set election = ?3
 where election = ?2 and state = 'waiting' and json_extract(kind, '$.job') = ?1;
