-- A process that is gone. ?1 boot, ?2 process, ?3 its start
delete from process where boot_id = ?1 and pid = ?2 and started = ?3;
