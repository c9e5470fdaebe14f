-- Fenced (begin). Writes one page of a ledger run's units: the (merchant, currency) pairs with open entries available before
-- the cutoff, in byte order of the key. Writing a page again changes nothing.
-- A pair whose only open entry is a carry below the minimum gets no unit: it would only be carried once more. A held merchant
-- gets none.
-- Safe because: a unit only announces work; what it settles is decided when it binds.
-- $1 run, $2 election, $3 job, $4 cutoff, $5 sources, $6 currencies, $7 merchants (empty: all), $8 and $9 currency and merchant
-- of the last key of the page before (null: the first), $10 limit, $11 currencies that have a minimum, $12 those minima
with pairs as (
    select e.currency collate "C" as currency, e.merchant
      from bursar.entry e
      left join unnest($11::text[], $12::bigint[]) as m (currency, minimum) on m.currency = e.currency
     where e.unit_id is null
       and e.withdrawn_at is null
       and e.available_at < $4
       -- What bursar wrote for a job is that job's alone, and so whatever the job selects by now.
       and (e.job_id = $3 or (e.job_id is null and (cardinality($5::text[]) = 0 or e.source = any ($5))
                                               and (cardinality($6::text[]) = 0 or e.currency = any ($6))
                                               and (cardinality($7::text[]) = 0 or e.merchant = any ($7))))
       and ($8::text is null or (e.currency collate "C", e.merchant) > ($8, $9::text))
       and not exists (select from bursar.merchant_hold h where h.merchant = e.merchant)
     group by e.currency collate "C", e.merchant, m.minimum
    having not (count(*) = 1 and bool_and(e.kind = 'carry') and sum(e.amount) < coalesce(m.minimum, 0))
     order by e.currency collate "C", e.merchant
     limit $10
), added as (
    insert into bursar.unit (run_id, election, key, merchant, currency)
    select $1, $2, p.currency || ':' || p.merchant, p.merchant, p.currency
      from pairs p
     order by p.currency, p.merchant
    on conflict (run_id, key) do nothing
    returning 1
)
select (select count(*) from added) as units,
       (select count(*) from pairs) as pairs,
       (select max(p.currency || ':' || p.merchant collate "C") from pairs p) as last_key;
