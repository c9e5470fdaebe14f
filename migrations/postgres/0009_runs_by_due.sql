-- Lists of runs go along it, newest due first: what `status`, the status page and `runs list` show must not cost more with
-- every run that ever was.
create index run_by_due on bursar.run (due_at desc, id desc);
