-- Processes of an earlier boot are gone.
delete from process where boot_id <> ?1;
