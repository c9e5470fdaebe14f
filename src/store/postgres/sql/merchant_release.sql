-- Ends a merchant's hold. Every gate is held shared.
-- Safe because: whoever holds a payout for it has the row locked until it is done, and this waits for that; what waits for this finds
-- the hold gone.
-- $1 merchant
delete from bursar.merchant_hold h where h.merchant = $1;
