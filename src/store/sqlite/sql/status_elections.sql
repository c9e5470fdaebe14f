-- Elections with the claim in force and who stands behind it.
select f.election, f.term, f.tenure_id, f.halted_at, f.halt_reason, f.halted_by, h.replica, h.accepted_at, h.end_reason
  from fence f
  left join term_history h on h.election = f.election and h.term = f.term and h.tenure_id = f.tenure_id
 order by f.election;
