-- The store's time, who it is, and how many refusals are on record.
select (select c.now from clock c) as now,
       (select d.deployment_id from deployment d) as deployment_id,
       (select count(*) from fence_reject) as rejects;
