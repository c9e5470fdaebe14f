-- Who is there: those on a lease that lives, in one snapshot.
select r.record as record from replica r join lease l on l.id = r.lease
 where l.boot_id = ?1 and l.expires_ms > ?2 order by r.id limit ?3;
