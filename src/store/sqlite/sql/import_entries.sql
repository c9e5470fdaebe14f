-- One chunk of a file: an array of [line, id, merchant, currency, kind, amount, fee, occurred at, available at, reference].
-- Safe because: the transaction is the only one that writes; an id that is there is left as it is, and compared by the
-- statement after this one. JSON keeps whole numbers of 64 bits as they are.
-- ?1 source, ?2 import, ?3 chunk
insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference, import_id)
select ?1, g.value ->> 1, g.value ->> 2, g.value ->> 3, g.value ->> 4, g.value ->> 5, g.value ->> 6, g.value ->> 7,
       g.value ->> 8, g.value ->> 9, ?2
  from json_each(?3) g
 where true
    on conflict (source, external_id) where withdrawn_at is null and reverted_at is null do nothing;
