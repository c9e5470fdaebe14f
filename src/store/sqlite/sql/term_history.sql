-- The accepted term, in the transaction that accepted it, with its number: whatever lower terms wrote has a smaller one.
-- ?1 election, ?2 term, ?3 tenure, ?4 replica, ?5 host, ?6 version
insert into term_history (election, term, tenure_id, replica, host, version, accepted_at, fenced_seq, system_identifier, timeline)
select ?1, ?2, ?3, ?4, ?5, ?6, c.now, s.value, d.file_id, 0
  from clock c, fenced_seq s, deployment d;
