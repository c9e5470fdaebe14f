-- Audit: units that are pending or set aside and yet have an effect.
-- ?1 examples
with bad as (
    select format('unit %s (%s) is %s and has a journal', u.id, u.key, u.state) as what
      from unit u
      join journal j on j.unit_id = u.id and j.generation = u.generation and j.kind = 'settle'
     where u.state in ('pending', 'set_aside')
    union all
    select format('unit %s (%s) is %s and has a payout', u.id, u.key, u.state)
      from unit u
      join instruction i on i.unit_id = u.id and i.generation = u.generation and i.kind = 'payout'
     where u.state in ('pending', 'set_aside')
    union all
    select format('unit %s (%s) is %s and its call is done', u.id, u.key, u.state)
      from unit u
      join instruction i on i.unit_id = u.id and i.generation = u.generation and i.kind = 'call'
     where u.state in ('pending', 'set_aside') and i.state = 'paid'
    union all
    select format('unit %s (%s) is %s and its call is %s', u.id, u.key, u.state, i.state)
      from unit u
      join instruction i on i.unit_id = u.id and i.generation = u.generation and i.kind = 'call'
     where u.state = 'pending' and i.state in ('held', 'rejected', 'returned')
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
