-- The yardstick on SQLite: the effect of one settlement run, as one set-based script in one transaction. No fence, no claims,
-- no batches, no recovery; the same rows at the end.
begin immediate;

insert into run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term,
                 opened_at, fenced_seq)
select j.id, j.name, 'bench', 'tick', c.now, c.now, c.now, date(c.now / 1000000, 'unixepoch'), j.definition, j.fingerprint,
       'planning', 1, c.now, 1
  from job j, clock c
 where j.name = 'yardstick';

insert into unit (run_id, election, key, merchant, currency)
select r.id, 'bench', e.currency || ':' || e.merchant, e.merchant, e.currency
  from run r,
       (select distinct merchant, currency from entry where unit_id is null and withdrawn_at is null) e
 where r.job = 'yardstick';

update entry as e
   set unit_id = u.id
  from unit u join run r on r.id = u.run_id
 where r.job = 'yardstick' and u.key = e.currency || ':' || e.merchant
   and e.unit_id is null and e.withdrawn_at is null and e.available_at < r.cutoff_at;

create temporary table netted as
select u.id as unit_id, u.run_id, u.key, u.merchant, u.currency, s.source,
       sum(s.amount) as gross, sum(s.fee) as fees, sum(s.amount - s.fee) as net
  from unit u
  join run r on r.id = u.run_id
  join entry s on s.unit_id = u.id
 where r.job = 'yardstick'
 group by u.id, s.source;

insert into journal (unit_id, run_id, kind, election, term, posted_at, fenced_seq)
select n.unit_id, n.run_id, 'settle', 'bench', 1, c.now, 1 from netted n, clock c;

insert into posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
select j.id, 1, 'source_clearing', n.source, 'payable', n.merchant, n.currency, n.gross
  from netted n join journal j on j.unit_id = n.unit_id where n.gross > 0
union all
select j.id, 2, 'payable', n.merchant, 'fees', '', n.currency, n.fees
  from netted n join journal j on j.unit_id = n.unit_id where n.fees > 0
union all
select j.id, 3, 'payable', n.merchant, 'payout_clearing', '', n.currency, n.net
  from netted n join journal j on j.unit_id = n.unit_id where n.net > 0;

insert into instruction (unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, value_date,
                         term, created_at, fenced_seq)
select n.unit_id, n.run_id, r.job_id, 'bench', 'payout', printf('b%026d', n.unit_id), n.merchant, n.currency, n.net,
       cast(json_object('key', n.key, 'merchant', n.merchant, 'amount_minor', cast(n.net as text), 'currency', n.currency,
                        'run', cast(n.run_id as text), 'job', r.job, 'tick', r.tick, 'value_date', r.value_date) as blob),
       r.value_date, 1, r.opened_at, 1
  from netted n join run r on r.id = n.run_id
 where n.net > 0;

update unit as u
   set state = 'settled', ended_at = r.opened_at, net = n.net, term = 1, fenced_seq = 1
  from netted n join run r on r.id = n.run_id
 where n.unit_id = u.id;

update run set state = 'complete', finished_at = opened_at where job = 'yardstick';

commit;
