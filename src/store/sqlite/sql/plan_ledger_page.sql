-- Fenced (begin). One page of a ledger run's units to be: the (merchant, currency) pairs with open entries available before
-- the cutoff, in byte order of the key. A pair whose only open entry is a carry below the minimum gets no unit: it would only
-- be carried once more. A held merchant gets none.
-- Safe because: a unit only announces work; what it settles is decided when it binds.
-- ?1 job, ?2 cutoff, ?3 sources, ?4 currencies, ?5 merchants (empty lists: all), ?6 and ?7 currency and merchant of the last
-- key of the page before (null: the first), ?8 limit, ?9 minima: [currency, minimum]
select e.currency, e.merchant
  from entry e
 where e.unit_id is null
   and e.withdrawn_at is null
   and e.available_at < ?2
   -- What bursar wrote for a job is that job's alone, and so whatever the job selects by now.
   and (e.job_id = ?1 or (e.job_id is null and (?3 = '[]' or e.source in (select value from json_each(?3)))
                                           and (?4 = '[]' or e.currency in (select value from json_each(?4)))
                                           and (?5 = '[]' or e.merchant in (select value from json_each(?5)))))
   and (?6 is null or (e.currency, e.merchant) > (?6, ?7))
   and not exists (select 1 from merchant_hold h where h.merchant = e.merchant)
 group by e.currency, e.merchant
having not (count(*) = 1 and min(e.kind = 'carry')
            and max(e.amount) < coalesce((select m.value ->> 1 from json_each(?9) m where m.value ->> 0 = e.currency), 0))
 order by e.currency, e.merchant
 limit ?8;
