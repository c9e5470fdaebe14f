-- Lets a replica lead again. ?1 replica
delete from cordon where replica = ?1;
