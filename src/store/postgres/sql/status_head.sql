-- The store's time, who it is, and how many refusals are on record.
select clock_timestamp() as now,
       (select d.deployment_id from bursar.deployment d) as deployment_id,
       (select count(*) from bursar.fence_reject) as rejects;
