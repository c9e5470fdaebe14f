-- What the store was accepted as last; one committed row.
select e.accepted from bursar.coordinator_election e where e.name = $1;
