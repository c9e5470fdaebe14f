-- The coordinator that the deployment is bound to.
select d.deployment_id, d.coordinator_kind, d.coordinator_prefix from deployment d;
