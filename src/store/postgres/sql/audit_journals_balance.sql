-- Audit: journals that do not move what their unit comes to, in its currency, for its merchant. That each line balances is held
-- by the table: a posting has one amount, a debit and a credit.
-- $1 examples
with settled as (
    select j.id, u.key, u.state, u.merchant, u.currency, u.net, r.job || '/' || u.merchant as carry_owner
      from bursar.journal j
      join bursar.unit u on u.id = j.unit_id and u.generation = j.generation
      join bursar.run r on r.id = u.run_id
     where j.kind = 'settle'
), bad as (
    select format('journal %s moves %s to payout clearing, the net of its unit %s is %s', s.id, m.moved, s.key, s.net) as what
      from settled s
      cross join lateral (
           select coalesce(sum(case when p.credit_kind = 'payout_clearing' then p.amount else -p.amount end), 0) as moved
             from bursar.posting p
            where p.journal_id = s.id
              and 'payout_clearing' in (p.debit_kind, p.credit_kind)
           offset 0) m
     where s.state = 'settled'
       and m.moved is distinct from s.net
    union all
    select format('journal %s of unit %s has no postings', s.id, s.key)
      from settled s
     where s.net <> 0
       and not exists (select from bursar.posting p where p.journal_id = s.id)
    union all
    select format('posting %s of journal %s is for %s, its unit %s for %s', p.seq, s.id, o.owner, s.key, s.merchant)
      from settled s
      join bursar.posting p on p.journal_id = s.id
      cross join lateral (values (p.debit_kind, p.debit_owner), (p.credit_kind, p.credit_owner)) o (kind, owner)
     where (o.kind = 'payable' and o.owner is distinct from s.merchant)
        or (o.kind = 'carry' and o.owner is distinct from s.carry_owner)
    union all
    select format('posting %s of journal %s is in %s, its unit %s in %s', p.seq, p.journal_id, p.currency, u.key, u.currency)
      from bursar.posting p
      join bursar.journal j on j.id = p.journal_id
      join bursar.unit u on u.id = j.unit_id
     where p.currency is distinct from u.currency
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
