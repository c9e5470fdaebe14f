-- What runs of a ledger job would take of what is open now, by cutoff, currency and merchant, summed in halves of 32 bits. Reads one
-- snapshot and changes nothing. Whoever changes what a run takes changes this too.
-- ?1 job, ?2 cutoffs in order, ?3 sources, ?4 currencies, ?5 merchants (empty lists: all), ?6 minima: [currency, minimum]
with open_entry as (
    select (select count(*) from json_each(?2) c where c.value <= e.available_at) as cutoff, e.currency, e.merchant, e.kind, e.amount,
           e.fee, coalesce((select m.value ->> 1 from json_each(?6) m where m.value ->> 0 = e.currency), 0) as minimum
      from entry e
     where e.unit_id is null
       and e.withdrawn_at is null
       and (e.job_id = (select j.id from job j where j.name = ?1)
            or (e.job_id is null and (?3 = '[]' or e.source in (select value from json_each(?3)))
                                 and (?4 = '[]' or e.currency in (select value from json_each(?4)))
                                 and (?5 = '[]' or e.merchant in (select value from json_each(?5)))))
       and not exists (select 1 from merchant_hold h where h.merchant = e.merchant)
)
select o.cutoff, o.currency, o.minimum, count(*) as entries, sum(o.amount >> 32) as amount_high,
       sum(o.amount & 4294967295) as amount_low, sum(o.fee >> 32) as fees_high, sum(o.fee & 4294967295) as fees_low
  from open_entry o
 where o.cutoff < json_array_length(?2)
 group by o.cutoff, o.currency, o.merchant, o.minimum
having not (count(*) = 1 and min(o.kind = 'carry') and max(o.amount) < o.minimum)
 order by o.cutoff, o.currency;
