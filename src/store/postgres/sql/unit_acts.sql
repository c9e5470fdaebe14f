-- What operators did about a unit: words on its payouts and calls, releases of its run, retries that name it or all; oldest first.
-- $1 unit, $2 its run, $3 its key, $4 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from bursar.operator_act a
 where (a.action in ('payouts resolve', 'ask: payouts resolve', 'units resolve', 'ask: units resolve')
        and a.target in (select i.idempotency_key from bursar.instruction i where i.unit_id = $1))
    or (a.action in ('payouts release', 'ask: payouts release') and a.target = $2::bigint::text
        and exists (select from bursar.instruction i where i.unit_id = $1 and i.kind = 'payout'))
    or (a.action = 'units retry' and a.target = 'run ' || $2::bigint::text
        and (coalesce(jsonb_array_length(a.details -> 'keys'), 0) = 0 or a.details -> 'keys' ? $3))
 order by a.id
 limit $4;
