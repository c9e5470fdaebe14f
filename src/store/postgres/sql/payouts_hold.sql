-- Fenced (begin), with the payouts locked. Holds them for a person, each with its reason.
-- Safe because: only what is not on the wire is held, and a doubt stays. What is held as unknown is in doubt, also where every try
-- was proved undone: once its key may be forgotten, nobody knows what another one would do.
-- $1 election, $2 instructions, $3 reasons, $4 errors
update bursar.instruction i
   set state = 'held', reason = g.reason, in_doubt = i.in_doubt or g.reason = 'unknown', next_attempt_at = null, last_error = coalesce(g.error, i.last_error)
  from unnest($2::bigint[], $3::text[], $4::text[]) as g (id, reason, error)
 where i.id = g.id and i.election = $1 and i.state in ('pending', 'unknown');
