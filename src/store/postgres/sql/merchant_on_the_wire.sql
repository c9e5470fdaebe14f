-- How many payouts of a merchant cannot be called back. A statement of its own, after merchant_hold_payouts.sql in its
-- transaction: what that had to wait for may have been put on the wire since its snapshot was taken. $1 merchant
select count(*) as on_the_wire from bursar.instruction i where i.merchant = $1 and i.kind = 'payout' and i.state = 'sending';
