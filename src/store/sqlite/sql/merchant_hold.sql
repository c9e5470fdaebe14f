-- Holds a merchant; no row is touched where it is held already. Nobody else writes until the transaction's end.
-- ?1 merchant, ?2 reason, ?3 act
insert into merchant_hold (merchant, reason, held_at, act_id)
select ?1, ?2, c.now, ?3 from clock c where not exists (select 1 from merchant_hold h where h.merchant = ?1);
