-- Whether a process is a replica of this file. ?1 boot, ?2 process, ?3 its start
select p.replica from process p where p.boot_id = ?1 and p.pid = ?2 and p.started = ?3;
