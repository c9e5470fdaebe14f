-- Who is there: those on a lease that lives.
select r.record from bursar.coordinator_replicas($1) r;
