-- Jobs with payouts of an election that may have to be sent, with their definitions in force. Inside a fenced transaction.
-- Jobs that were removed, or moved to another election, are among them: what they wrote here is sent from here.
-- ?1 election
select j.id, j.name, j.definition
  from job j
 where exists (select 1 from instruction i
                where i.job_id = j.id
                  and i.election = ?1
                  and i.kind = 'payout'
                  and i.state in ('pending', 'unknown')
                  and i.release <> 'waiting')
 order by j.id;
