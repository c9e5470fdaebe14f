-- Notes what the store was accepted as, inside BEGIN IMMEDIATE, only for the win that is named and still lives. No change of the
-- leader key, so no revision.
update election set accepted = ?3
 where name = ?1 and leader_revision = ?2 and leader_lease = ?6
   and (leader_lease = 0 or exists (select 1 from lease l where l.id = election.leader_lease
                                                            and l.boot_id = ?4 and l.expires_ms > ?5));
