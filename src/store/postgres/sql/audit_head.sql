-- Audit: when and where it looks. The snapshot of the transaction is taken here.
select clock_timestamp() as at,
       pg_is_in_recovery() as standby,
       (select d.deployment_id from bursar.deployment d) as deployment_id;
