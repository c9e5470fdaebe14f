-- Holds a merchant. No row: it is held already.
-- $1 merchant, $2 reason, $3 act
insert into bursar.merchant_hold (merchant, reason, act_id) values ($1, $2, $3) on conflict (merchant) do nothing returning merchant;
