-- How many payouts of a merchant cannot be called back. ?1 merchant
select count(*) as on_the_wire from instruction i where i.merchant = ?1 and i.kind = 'payout' and i.state = 'sending';
