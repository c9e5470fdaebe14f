-- Audit: carry accounts that are not the sum of their open carry entries.
-- $1 examples
with sides as (
    select l.owner, l.currency, l.amount as account, 0 as entries from bursar.ledger_line l where l.kind = 'carry'
    union all
    select (j.name || '/' || e.merchant) collate "C", e.currency, 0, e.amount
      from bursar.entry e
      join bursar.job j on j.id = e.job_id
     where e.kind = 'carry' and e.unit_id is null and e.withdrawn_at is null and e.reverted_at is null
), bad as (
    select format('carry of %s: the account has %s %s, the open carries %s', s.owner, sum(s.account), s.currency, sum(s.entries)) as what
      from sides s
     group by s.owner, s.currency
    having sum(s.account) <> sum(s.entries)
), stranded as (
    select count(*) as entries, string_agg(distinct j.name, ', ' order by j.name) as jobs
      from bursar.entry e
      join bursar.job j on j.id = e.job_id
     where e.unit_id is null
       and e.withdrawn_at is null
       and (j.removed_at is not null or jsonb_typeof(j.definition #> '{handler,ledger}') is distinct from 'object')
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       (select format('%s open entries belong to jobs that are gone or settle no ledger any more (%s): only their job takes them', s.entries, s.jobs) from stranded s where s.entries > 0) as not_proven;
