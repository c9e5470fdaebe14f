-- Fenced (begin). The state of a run, and why it is given up where it is: nobody changes it until the transaction's end. ?1 run, ?2 election
select r.state, r.why from run r where r.id = ?1 and r.election = ?2;
