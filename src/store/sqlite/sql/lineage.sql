-- Where the file stands: which one it is, and its last fenced transaction.
select d.file_id as system_identifier, s.value as position from deployment d, fenced_seq s;
