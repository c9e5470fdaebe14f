-- What runs of a ledger job would take of what is open now, by cutoff and currency. Reads one snapshot and changes nothing. Whoever
-- changes what a run takes changes this too.
-- $1 job, $2 cutoffs in order, $3 sources, $4 currencies, $5 merchants (empty: all), $6 currencies that have a minimum, $7 those
-- minima
with pairs as (
    select width_bucket(e.available_at, $2::timestamptz[]) as cutoff, e.currency, e.merchant, count(*) as entries,
           sum(e.amount) as amount, sum(e.fee) as fees, coalesce(m.minimum, 0) as minimum
      from bursar.entry e
      left join unnest($6::text[], $7::bigint[]) as m (currency, minimum) on m.currency = e.currency
     where e.unit_id is null
       and e.withdrawn_at is null
       and width_bucket(e.available_at, $2::timestamptz[]) < cardinality($2::timestamptz[])
       and (e.job_id = (select j.id from bursar.job j where j.name = $1)
            or (e.job_id is null and (cardinality($3::text[]) = 0 or e.source = any ($3))
                                 and (cardinality($4::text[]) = 0 or e.currency = any ($4))
                                 and (cardinality($5::text[]) = 0 or e.merchant = any ($5))))
       and not exists (select from bursar.merchant_hold h where h.merchant = e.merchant)
     group by 1, e.currency, e.merchant, m.minimum
    having not (count(*) = 1 and bool_and(e.kind = 'carry') and sum(e.amount) < coalesce(m.minimum, 0))
)
select p.cutoff::bigint as cutoff, p.currency, count(*) as units, sum(p.entries)::bigint as entries, sum(p.amount)::text as amount,
       sum(p.fees)::text as fees, count(*) filter (where p.amount - p.fees > 0 and p.amount - p.fees >= p.minimum) as payouts,
       coalesce(sum(p.amount - p.fees) filter (where p.amount - p.fees > 0 and p.amount - p.fees >= p.minimum), 0)::text as paid
  from pairs p
 group by p.cutoff, p.currency
 order by p.cutoff, p.currency;
