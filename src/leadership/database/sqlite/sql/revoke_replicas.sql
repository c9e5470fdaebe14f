-- The records that stood on a revoked lease, in the same transaction.
delete from replica where lease = ?1;
