-- Audit: payouts whose postings do not say what their state says, and carries of payouts that did not come back.
-- Paid: payout clearing to bank. Rejected: payout clearing to the job's carry. Returned: paid, and bank to the job's carry. Not
-- final: nothing. ?1 examples
with leg as materialized (
    select j.unit_id, j.generation, j.kind, count(p.seq) as lines, min(p.amount) as amount, min(p.currency) as currency,
           min(p.debit_kind || '>' || p.credit_kind) as way, min(p.debit_owner || p.credit_owner) as owner
      from journal j
      left join posting p on p.journal_id = j.id
     where j.kind <> 'settle'
     group by j.unit_id, j.generation, j.kind
), outcome (kind, way) as (
    values ('paid', 'payout_clearing>bank'), ('rejected', 'payout_clearing>carry'), ('returned', 'bank>carry')
), expected as materialized (
    select i.idempotency_key, i.state, i.unit_id, i.generation, i.amount, i.currency, i.merchant, i.job_id, o.kind, o.way,
           o.kind || ':' || i.unit_id || ':' || i.generation as carry_id,
           case when o.kind = 'paid' then '' else r.job || '/' || i.merchant end as owner,
           case o.kind when 'paid' then i.state in ('paid', 'returned') else i.state = o.kind end as wanted
      from instruction i
      join run r on r.id = i.run_id
     cross join outcome o
     where i.kind = 'payout'
), carry as materialized (
    select e.external_id, count(*) as carries, min(e.amount) as amount, min(e.merchant) as merchant, min(e.currency) as currency,
           min(e.job_id) as job_id
      from entry e
     where e.kind = 'carry' and e.source = 'bursar' and e.external_id not like 'carry:%'
     group by e.external_id
), bad as (
    select format('payout %s is %s, and its journal "%s" has %s lines of %s', x.idempotency_key, x.state, x.kind,
                  coalesce(l.lines, 0), coalesce(l.amount, 0)) as what
      from expected x
      left join leg l on l.unit_id = x.unit_id and l.generation = x.generation and l.kind = x.kind
     where case when x.wanted
                then (l.lines, l.amount, l.currency, l.way, l.owner) is not (1, x.amount, x.currency, x.way, x.owner)
                else l.unit_id is not null end
    union all
    select format('payout %s is %s, and %s carries of %s came back', x.idempotency_key, x.state, coalesce(c.carries, 0), coalesce(c.amount, 0))
      from expected x
      left join carry c on c.external_id = x.carry_id
     where x.kind <> 'paid'
       and case when x.wanted
                then (c.carries, c.amount, c.merchant, c.currency, c.job_id) is not (1, x.amount, x.merchant, x.currency, x.job_id)
                else c.external_id is not null end
    union all
    select format('entry bursar/%s is a carry of no payout', c.external_id)
      from carry c
     where not exists (select 1 from expected x where x.carry_id = c.external_id)
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
