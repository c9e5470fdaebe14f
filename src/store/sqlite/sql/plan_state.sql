-- Fenced (begin). The state of a run: nobody changes it until the transaction's end. ?1 run, ?2 election
select r.state from run r where r.id = ?1 and r.election = ?2;
