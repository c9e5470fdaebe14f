-- Fenced (begin), with the payouts locked. Holds them for a person, each with its reason.
-- Safe because: only what is not on the wire is held, and a doubt stays. What is held as unknown is in doubt, also where every try
-- was proved undone: once its key may be forgotten, nobody knows what another one would do. What is held for its merchant is so only
-- where the hold still stands, and keeps it standing until this transaction ends: a release of the merchant, which frees what it
-- sees, comes wholly before or wholly after.
-- $1 election, $2 instructions, $3 reasons, $4 errors
with given as materialized (
    select g.id, g.reason, g.error from unnest($2::bigint[], $3::text[], $4::text[]) as g (id, reason, error)
), standing as materialized (
    select h.merchant
      from bursar.merchant_hold h
     where h.merchant in (select i.merchant from given g join bursar.instruction i on i.id = g.id where g.reason = 'merchant')
     order by h.merchant
       for key share of h
)
update bursar.instruction i
   set state = 'held', reason = g.reason, in_doubt = i.in_doubt or g.reason = 'unknown', next_attempt_at = null, last_error = coalesce(g.error, i.last_error)
  from given g
 where i.id = g.id and i.election = $1 and i.state in ('pending', 'unknown')
   and (g.reason <> 'merchant' or i.merchant in (select s.merchant from standing s));
