-- What an import brought, once it is known.
-- ?1 import, ?2 rows, ?3 sums
update import set rows = ?2, sums = ?3 where id = ?1;
