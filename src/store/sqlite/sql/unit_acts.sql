-- What operators did about a unit: words on its payouts and calls, releases of its run, retries that name it or all; oldest first.
-- ?1 unit, ?2 its run, ?3 its key, ?4 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from operator_act a
 where (a.action in ('payouts resolve', 'ask: payouts resolve', 'units resolve', 'ask: units resolve')
        and a.target in (select i.idempotency_key from instruction i where i.unit_id = ?1))
    or (a.action in ('payouts release', 'ask: payouts release') and a.target = cast(?2 as text)
        and exists (select 1 from instruction i where i.unit_id = ?1 and i.kind = 'payout'))
    or (a.action = 'units retry' and a.target = 'run ' || ?2
        and (coalesce(json_array_length(a.details, '$.keys'), 0) = 0
             or ?3 in (select k.value from json_each(a.details, '$.keys') k)))
 order by a.id
 limit ?4;
