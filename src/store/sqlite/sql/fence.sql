-- The fence of one election. As the first statement after BEGIN IMMEDIATE it holds to the transaction's end, for nobody else
-- can write meanwhile.
select f.term, f.tenure_id, f.halt_reason, f.halted_at, f.halted_by from fence f where f.election = ?1;
