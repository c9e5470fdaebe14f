-- A lease of its own id, made by whoever asks: twice the same is an error and no second lease.
select bursar.coordinator_grant($1, $2)::text as granted;
