-- Audit: carry accounts that are not the sum of their open carry entries. Sums in halves, as
-- audit_nets_follow_from_entries.sql says.
-- ?1 examples
with sides as (
    select l.owner, l.currency, 1 as account, l.amount from ledger_line l where l.kind = 'carry'
    union all
    select j.name || '/' || e.merchant, e.currency, 0, e.amount
      from entry e
      join job j on j.id = e.job_id
     where e.kind = 'carry' and e.unit_id is null and e.withdrawn_at is null and e.reverted_at is null
), summed as (
    select s.owner, s.currency,
           coalesce(sum(s.amount >> 32) filter (where s.account), 0) as account_high,
           coalesce(sum(s.amount & 4294967295) filter (where s.account), 0) as account_low,
           coalesce(sum(s.amount >> 32) filter (where not s.account), 0) as entries_high,
           coalesce(sum(s.amount & 4294967295) filter (where not s.account), 0) as entries_low
      from sides s
     group by s.owner, s.currency
), bad as (
    select format('carry of %s: the account has %s %s, the open carries %s', s.owner,
                  char(1) || s.account_high || ':' || s.account_low || char(1), s.currency,
                  char(1) || s.entries_high || ':' || s.entries_low || char(1)) as what
      from summed s
     where s.account_high - s.entries_high + ((s.account_low - s.entries_low) >> 32) <> 0
        or ((s.account_low - s.entries_low) & 4294967295) <> 0
), stranded as (
    select count(*) as entries, group_concat(distinct j.name) as jobs
      from entry e
      join job j on j.id = e.job_id
     where e.unit_id is null
       and e.withdrawn_at is null
       and (j.removed_at is not null or json_type(j.definition, '$.handler.ledger') is distinct from 'object')
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       (select format('%s open entries belong to jobs that are gone or settle no ledger any more (%s): only their job takes them', s.entries, s.jobs) from stranded s where s.entries > 0) as not_proven;
