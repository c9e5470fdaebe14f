-- One migration at a time, to the end of the transaction. The key is "bursar/m" in ASCII.
select pg_advisory_xact_lock(7094428142285811565);
