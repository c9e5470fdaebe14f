-- Payouts of an election that are not final, by state. Calls are told of as their units.
-- ?1 election
select i.state, count(*) as instructions
  from instruction i
 where i.election = ?1
   and i.kind = 'payout'
   and i.state in ('pending', 'sending', 'unknown', 'held')
 group by i.state;
