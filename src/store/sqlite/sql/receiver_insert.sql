-- Fenced (record). Puts a receiver on record where it is not; nothing is known of it yet. ?1 origin, ?2 term
insert into receiver (origin, term) values (?1, ?2) on conflict (origin) do nothing;
