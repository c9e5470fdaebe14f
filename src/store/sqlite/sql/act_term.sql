-- The term in force, which an operator's act is stamped with. Nobody advances before this transaction's end. ?1 election
select f.term from fence f where f.election = ?1;
