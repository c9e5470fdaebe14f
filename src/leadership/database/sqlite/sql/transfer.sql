-- Puts the successor, inside BEGIN IMMEDIATE, only over the win that is named and still lives, the term key as it was seen, on a
-- lease that lives and that the successor is registered on.
update election
   set revision = revision + 2, term = ?4, term_revision = revision + 2,
       leader = ?6, leader_lease = ?7, leader_revision = revision + 2
 where name = ?1 and leader_revision = ?2 and leader_lease = ?10 and term_revision = ?3 and term < ?4
   and (leader_lease = 0 or exists (select 1 from lease l where l.id = election.leader_lease
                                                            and l.boot_id = ?8 and l.expires_ms > ?9))
   and exists (select 1 from replica r join lease l on l.id = r.lease
                where r.id = ?5 and r.lease = ?7 and l.boot_id = ?8 and l.expires_ms > ?9);
