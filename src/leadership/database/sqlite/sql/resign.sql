-- Takes away only the leader of the win that is named, inside BEGIN IMMEDIATE, and only while its lease lives: lapsed, it is
-- absent already.
update election set revision = revision + 2, leader = null, leader_lease = null, leader_revision = null
 where name = ?1 and leader_revision = ?2 and leader_lease = ?5
   and (leader_lease = 0 or exists (select 1 from lease l where l.id = election.leader_lease
                                                            and l.boot_id = ?3 and l.expires_ms > ?4));
