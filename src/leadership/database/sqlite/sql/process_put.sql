-- Records a process; safe to repeat.
insert into process (pid, boot_id, started) values (?1, ?2, ?3) on conflict do nothing;
