-- Audit: when and where it looks. The transaction sees from here on the state that stands now.
select (select c.now from clock c) as at, (select d.deployment_id from deployment d) as deployment_id;
