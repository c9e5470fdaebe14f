-- The election that a payout belongs to for life.
-- $1 key
select i.election from bursar.instruction i where i.idempotency_key = $1 and i.kind = 'payout';
