-- Hand-overs that are asked of the terms in force.
select t.election, t.term, t.to_replica from bursar.transfer t
join bursar.fence f on f.election = t.election and f.term = t.term
order by t.election;
