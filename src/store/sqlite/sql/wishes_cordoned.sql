-- Whether a replica is cordoned. ?1 replica
select exists (select 1 from cordon c where c.replica = ?1) as cordoned;
