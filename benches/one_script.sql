-- The yardstick: the effect of one settlement run, as one set-based script in one transaction. No fence, no claims, no
-- batches, no recovery; the same rows at the end.
begin;

with j as (select id, name, definition, fingerprint from bursar.job where name = 'yardstick')
insert into bursar.run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term)
select id, name, 'bench', 'tick', date_trunc('second', clock_timestamp()), date_trunc('second', clock_timestamp()),
       clock_timestamp(), current_date, definition, fingerprint, 'planning', 1
from j;

insert into bursar.unit (run_id, election, key, merchant, currency)
select r.id, 'bench', e.currency || ':' || e.merchant, e.merchant, e.currency
from bursar.run r, (select distinct merchant, currency from bursar.entry where unit_id is null and withdrawn_at is null) e
where r.job = 'yardstick';

update bursar.entry e set unit_id = u.id
from bursar.unit u join bursar.run r on r.id = u.run_id
where r.job = 'yardstick' and u.merchant = e.merchant and u.currency = e.currency
  and e.unit_id is null and e.withdrawn_at is null and e.available_at < r.cutoff_at;

create temporary table netted on commit drop as
select u.id as unit_id, u.run_id, u.key, u.merchant, u.currency, s.source,
       sum(s.amount)::bigint as gross, sum(s.fee)::bigint as fees, sum(s.amount - s.fee)::bigint as net
from bursar.unit u
join bursar.run r on r.id = u.run_id
join bursar.entry s on s.unit_id = u.id
where r.job = 'yardstick'
group by u.id, s.source;

insert into bursar.journal (unit_id, run_id, kind, election, term)
select unit_id, run_id, 'settle', 'bench', 1 from netted;

insert into bursar.posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
select j.id, line.seq, line.debit_kind, line.debit_owner, line.credit_kind, line.credit_owner, n.currency, line.amount
from netted n
join bursar.journal j on j.unit_id = n.unit_id
cross join lateral (values
    (1, 'source_clearing', n.source, 'payable', n.merchant, n.gross),
    (2, 'payable', n.merchant, 'fees', '', n.fees),
    (3, 'payable', n.merchant, 'payout_clearing', '', n.net)
) as line (seq, debit_kind, debit_owner, credit_kind, credit_owner, amount)
where line.amount > 0;

insert into bursar.instruction (unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, value_date, term)
select n.unit_id, n.run_id, r.job_id, 'bench', 'payout',
       'b' || substr(encode(sha256(convert_to(n.run_id || n.key, 'UTF8')), 'hex'), 1, 26),
       n.merchant, n.currency, n.net,
       convert_to(json_build_object('key', n.key, 'merchant', n.merchant, 'amount_minor', n.net::text, 'currency', n.currency,
                                    'run', n.run_id::text, 'job', r.job, 'tick', r.tick, 'value_date', r.value_date)::text, 'UTF8'),
       r.value_date, 1
from netted n join bursar.run r on r.id = n.run_id
where n.net > 0;

update bursar.unit u set state = 'settled', ended_at = clock_timestamp(), net = n.net, term = 1
from netted n where n.unit_id = u.id;

update bursar.run set state = 'complete', finished_at = clock_timestamp() where job = 'yardstick';

commit;
