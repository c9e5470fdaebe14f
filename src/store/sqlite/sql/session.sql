-- What every connection has: an acknowledged commit is on the disk, references hold, a REPLACE asks the guards, sums that
-- are sorted stay in memory, and the log is brought into the file every 1,000 pages.
pragma synchronous = full;
pragma foreign_keys = on;
pragma recursive_triggers = on;
pragma temp_store = memory;
pragma wal_autocheckpoint = 1000;
pragma cache_size = -16384;
