-- Instructions of an election that are not final, by state.
-- ?1 election
select i.state, count(*) as instructions
  from instruction i
 where i.election = ?1
   and i.state in ('pending', 'sending', 'unknown', 'held')
 group by i.state;
