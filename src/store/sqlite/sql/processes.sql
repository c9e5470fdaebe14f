-- Replicas that are listed in the file.
select p.boot_id, p.pid, p.started from process p;
