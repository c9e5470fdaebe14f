-- Audit: journals that do not move what their unit comes to, in its currency, for its merchant. That each line balances is held
-- by the table: a posting has one amount, a debit and a credit. Sums in halves, as audit_nets_follow_from_entries.sql says.
-- ?1 examples
with settled as materialized (
    select j.id, u.key, u.state, u.merchant, u.currency, u.net, r.job || '/' || u.merchant as carry_owner
      from journal j
      join unit u on u.id = j.unit_id and u.generation = j.generation
      join run r on r.id = u.run_id
     where j.kind = 'settle'
), moved as (
    select s.id, s.key, s.net,
           coalesce(sum(case when p.credit_kind = 'payout_clearing' then p.amount >> 32 else -(p.amount >> 32) end), 0) as high,
           coalesce(sum(case when p.credit_kind = 'payout_clearing' then p.amount & 4294967295 else -(p.amount & 4294967295) end), 0) as low
      from settled s
      left join posting p on p.journal_id = s.id and 'payout_clearing' in (p.debit_kind, p.credit_kind)
     where s.state = 'settled'
     group by s.id
), bad as (
    select format('journal %s moves %s to payout clearing, the net of its unit %s is %s', m.id,
                  char(1) || m.high || ':' || m.low || char(1), m.key, m.net) as what
      from moved m
     where m.net is null
        or m.high - (m.net >> 32) + ((m.low - (m.net & 4294967295)) >> 32) <> 0
        or ((m.low - (m.net & 4294967295)) & 4294967295) <> 0
    union all
    select format('journal %s of unit %s has no postings', s.id, s.key)
      from settled s
     where s.net <> 0
       and not exists (select 1 from posting p where p.journal_id = s.id)
    union all
    select format('posting %s of journal %s is for %s, its unit %s for %s', l.seq, s.id, l.owner, s.key, s.merchant)
      from ledger_line l
      join settled s on s.id = l.journal_id
     where (l.kind = 'payable' and l.owner is distinct from s.merchant)
        or (l.kind = 'carry' and l.owner is distinct from s.carry_owner)
    union all
    select format('posting %s of journal %s is in %s, its unit %s in %s', p.seq, p.journal_id, p.currency, u.key, u.currency)
      from posting p
      join journal j on j.id = p.journal_id
      join unit u on u.id = j.unit_id
     where p.currency is distinct from u.currency
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
