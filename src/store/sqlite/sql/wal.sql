-- The write-ahead log: readers do not wait for the writer, and a commit is one fsync. Kept in the file.
pragma journal_mode = wal;
