-- This process is a replica that has the file open. ?1 boot, ?2 process, ?3 its start, ?4 replica
insert into process (boot_id, pid, started, replica, opened_at)
values (?1, ?2, ?3, ?4, (select now from clock))
on conflict (boot_id, pid, started) do update set replica = excluded.replica;
