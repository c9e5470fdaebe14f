-- One conditional update behind the lease's row lock; the expiry is by the clock read after it. Null: the lease is gone.
select (extract(epoch from bursar.coordinator_renew($1)) * 1000)::bigint as ttl_ms;
