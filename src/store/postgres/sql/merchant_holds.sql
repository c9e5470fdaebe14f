-- Merchants on hold.
select h.merchant, h.reason, h.held_at, a.os_user || '@' || a.host as by
  from bursar.merchant_hold h
  join bursar.operator_act a on a.id = h.act_id
 order by h.merchant;
