-- What an import brought, once it is known.
-- $1 import, $2 rows, $3 sums
update bursar.import i set rows = $2, sums = $3 where i.id = $1;
