-- The deployment's identity.
select d.deployment_id from deployment d;
