-- Audit: settled units without exactly the effect of their net.
-- An effect is a journal of the unit's generation and, where the net is above 0, one payout of exactly that. Units without a merchant are no ledger's: theirs may be a call, which is done then. ?1 examples
with posted as materialized (
    select j.unit_id, j.generation, count(*) as journals from journal j where j.kind = 'settle' group by j.unit_id, j.generation
), instructed as materialized (
    select i.unit_id, i.generation, i.kind, count(*) as instructions, min(i.amount) as amount, min(i.currency) as currency,
           min(i.merchant) as merchant, min(i.state = 'paid') as paid,
           min(i.run_id = u.run_id and i.election = u.election) as home
      from instruction i
      join unit u on u.id = i.unit_id
     group by i.unit_id, i.generation, i.kind
), bad as (
    select format('unit %s (%s): net %s, %s journals, %s payouts of %s %s', u.id, u.key, u.net, coalesce(p.journals, 0),
                  coalesce(i.instructions, 0), coalesce(i.amount, 0), coalesce(i.currency, '')) as what
      from unit u
      left join posted p on p.unit_id = u.id and p.generation = u.generation
      left join instructed i on i.unit_id = u.id and i.generation = u.generation and i.kind = 'payout'
     where u.state = 'settled'
       and u.merchant is not null
       and (u.net is null or u.net < 0
            or p.journals is distinct from 1
            or (u.net > 0 and (i.instructions is distinct from 1 or i.amount <> u.net or i.currency <> u.currency
                               or i.merchant <> u.merchant or not i.home))
            or (u.net = 0 and i.instructions is not null))
    union all
    select format('unit %s (%s): settled, its call is not done', u.id, u.key)
      from unit u
      join instructed i on i.unit_id = u.id and i.generation = u.generation and i.kind = 'call'
     where u.state = 'settled' and not i.paid
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
