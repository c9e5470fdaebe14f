-- One conditional update to win, inside BEGIN IMMEDIATE, by the clock read after it: the place is vacant as it was seen (?2 null:
-- absent; else without a lease, of that revision), the term key as it was seen, and the lease to stand on lives.
update election
   set revision = revision + 2, term = ?4, term_revision = revision + 2,
       leader = ?5, leader_lease = ?6, leader_revision = revision + 2
 where name = ?1 and term_revision = ?3 and term < ?4
   and exists (select 1 from lease l where l.id = ?6 and l.boot_id = ?7 and l.expires_ms > ?8)
   and ((?2 is null and (leader is null
                         or (leader_lease <> 0
                             and not exists (select 1 from lease l where l.id = election.leader_lease
                                                                     and l.boot_id = ?7 and l.expires_ms > ?8))))
        or (leader_lease = 0 and leader_revision = ?2));
