-- Forgets a process that is gone. Its pid may be another's by now, so all three are compared.
delete from process where pid = ?1 and boot_id = ?2 and started = ?3;
