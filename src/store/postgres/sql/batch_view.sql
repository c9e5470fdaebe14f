-- What a user's statement reads its units from: once per session, and gone with it. A join, so that nobody can write through
-- it. It shows the units that this transaction named, which are those that its claim has locked; none outside of a batch.
create or replace temporary view bursar_batch as
select u.key, u.payload, u.id as unit_id, u.run_id
  from unnest(nullif(current_setting('bursar.batch', true), '')::bigint[]) as b (id)
  join bursar.unit u on u.id = b.id
 where u.state = 'pending';
