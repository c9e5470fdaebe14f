-- The record of an import, before its entries: rows and sums are filled in at the end.
-- ?1 source, ?2 file name, ?3 sha256, ?4 act
insert into import (source, file_name, sha256, rows, sums, act_id, at)
select ?1, ?2, ?3, 0, '{}', ?4, c.now from clock c
returning id, at;
