-- Fenced (begin), after a claim. Binds the open entries of the claimed units to them, for ever, and answers the sums over
-- exactly what was bound.
-- Safe because: entries are locked in the order of ids and looked at again once locked; the UPDATE sets the unit only where
-- there is none; and the sums are over what that UPDATE returned. A SELECT of sums beside it let two runs post one entry.
-- A sum of bigint is numeric here: it is read as text and compared with the range by the caller, never cast.
-- $1 units, $2 their merchants, $3 their currencies, $4 cutoff, $5 job, $6 sources (empty: all),
-- $7 currencies (empty: all), $8 merchants (empty: all)
with wanted as materialized (
    select w.unit_id, w.merchant, w.currency,
           (cardinality($7::text[]) = 0 or w.currency = any ($7)) and (cardinality($8::text[]) = 0 or w.merchant = any ($8)) as selected
      from unnest($1::bigint[], $2::text[], $3::text[]) as w (unit_id, merchant, currency)
     where not exists (select from bursar.merchant_hold h where h.merchant = w.merchant)
), candidate as materialized (
    -- One look into the index of open entries per unit, whatever the planner thinks that it knows of a table that grew
    -- a thousandfold since it was analysed: hence the fence of OFFSET.
    select x.id, w.unit_id
      from wanted w
     cross join lateral (
           select e.id
             from bursar.entry e
            where e.merchant = w.merchant
              and e.currency = w.currency
              and e.unit_id is null
              and e.withdrawn_at is null
              and e.available_at < $4
              -- What bursar wrote for a job (a carry, the opposite of what it settled) is that job's alone, and so whatever
              -- the job selects by now.
              and (e.job_id = $5 or (e.job_id is null and w.selected and (cardinality($6::text[]) = 0 or e.source = any ($6))))
           offset 0) x
), chosen as materialized (
    -- Looked at again once locked. "No unit, not withdrawn" is said in a roundabout way (units are above 0), so that neither
    -- the index of open entries fits, which would be read from end to end for each, nor a guess that next to none are open.
    select e.id, c.unit_id
      from candidate c
      join bursar.entry e on e.id = c.id
     where coalesce(e.unit_id, 0) <= 0
       and coalesce(e.withdrawn_at, 'infinity') >= 'infinity'
     order by e.id
       for update of e
), bound as (
    update bursar.entry e
       set unit_id = c.unit_id
      from chosen c
     where e.id = c.id
       and coalesce(e.unit_id, 0) <= 0
       and coalesce(e.withdrawn_at, 'infinity') >= 'infinity'
    returning e.unit_id, e.source, e.kind, e.amount, e.fee, e.available_at
)
select b.unit_id,
       b.source,
       b.kind = 'carry'    as carry,
       count(*)            as entries,
       sum(b.amount)::text as amount,
       sum(b.fee)::text    as fee,
       max(b.available_at) as latest
  from bound b
 group by b.unit_id, b.source, b.kind = 'carry'
 order by b.unit_id, b.source, b.kind = 'carry';
