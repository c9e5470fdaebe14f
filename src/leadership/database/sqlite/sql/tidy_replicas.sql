-- Deletes the records of replicas whose lease is no more.
delete from replica where lease not in (select id from lease);
