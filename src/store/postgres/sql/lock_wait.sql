-- Bounds the waits of this transaction; milliseconds as text. A client that gave up leaves a wait that ends by itself.
select set_config('lock_timeout', $1, true), set_config('statement_timeout', $1, true);
