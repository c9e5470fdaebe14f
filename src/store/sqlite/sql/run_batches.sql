-- Batches of a run by the term that wrote them.
-- ?1 run
select b.term, count(*) as batches from batch b where b.run_id = ?1 group by b.term order by b.term;
