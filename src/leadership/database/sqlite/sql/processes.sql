-- The recorded processes. One snapshot; a writer that is stopped does not keep readers out.
select pid, boot_id, started from process;
