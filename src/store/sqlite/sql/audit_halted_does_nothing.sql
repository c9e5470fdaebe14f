-- Audit: runs that were opened, batches that settled and calls that were first sent while their election was halted.
-- By the store's clock and the operators' acts. What is recorded of calls that had left before is allowed: such a batch settles called units only. ?1 examples
with acts as (
    select a.election, a.action, a.at,
           lead(a.at) over (partition by a.election order by a.id) as until
      from operator_act a
     where a.action in ('halt', 'resume')
       and a.election is not null
       and not coalesce(a.details ->> 'already', 0)
), halted as materialized (
    select a.election, a.at as since, coalesce(a.until, 9223372036854775807) as until,
           strftime('%F %H:%M:%f', a.at / 1000000.0, 'unixepoch') as said
      from acts a
     where a.action = 'halt'
), bad as (
    select format('run %s of %s was opened at %s, halted since %s', r.id, r.election,
                  strftime('%F %H:%M:%f', r.opened_at / 1000000.0, 'unixepoch'), h.said) as what
      from halted h
      join run r on r.election = h.election and r.opened_at > h.since and r.opened_at < h.until
    union all
    select format('batch %s of %s was committed at %s, halted since %s', b.id, b.election,
                  strftime('%F %H:%M:%f', b.committed_at / 1000000.0, 'unixepoch'), h.said)
      from halted h
      join batch b on b.election = h.election and b.committed_at > h.since and b.committed_at < h.until
     where b.carried > 0
        or b.instructions > 0
        or ((b.settled > 0 or b.empty > 0)
            and exists (select 1
                          from unit u
                         where u.run_id = b.run_id
                           and u.batch_id = b.id
                           and u.state in ('settled', 'empty')
                           and not exists (select 1 from instruction i where i.unit_id = u.id and i.kind = 'call')))
    union all
    select format('instruction %s of %s was first sent at %s, halted since %s', i.idempotency_key, i.election,
                  strftime('%F %H:%M:%f', i.first_sent_at / 1000000.0, 'unixepoch'), h.said)
      from halted h
      join instruction i on i.election = h.election and i.first_sent_at > h.since and i.first_sent_at < h.until
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
