-- Takes the gate of every election shared, in the order of names, so that nobody advances, halts or resumes meanwhile.
select count(*)
  from (select pg_advisory_xact_lock_shared(bursar.gate(f.election))
          from (select f.election from bursar.fence f order by f.election collate "C") f) gates;
