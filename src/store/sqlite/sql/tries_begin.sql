-- Fenced (begin), after the statement that put these instructions on the wire, or has them asked for, in the same transaction:
-- a row for each try. Safe because: the number of a try only grows, so no row stands twice.
-- ?1 term, ?2 tries: [instruction, attempt, whether it is only asked for]
insert into instruction_try (instruction_id, attempt, asked, term, receiver, began_at)
select g.value ->> 0, g.value ->> 1, g.value ->> 2, ?1, i.receiver, c.now
  from json_each(?2) g
  join instruction i on i.id = g.value ->> 0
  join clock c;
