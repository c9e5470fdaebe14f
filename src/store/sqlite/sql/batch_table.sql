-- What a user's statement reads its units from: a table of the session's own, empty.
-- Safe because: it is temporary, and filled anew in each batch's transaction; what else is written to it changes nothing.
create table if not exists temp.bursar_batch (key text, payload text, unit_id integer, run_id integer);
delete from temp.bursar_batch;
