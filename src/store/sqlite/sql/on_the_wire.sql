-- Instructions that have left and have no outcome yet, and the term in force.
select (select count(*) from instruction i where i.election = ?1 and i.state = 'sending') as on_the_wire,
       (select f.term from fence f where f.election = ?1) as term;
