-- Makes an election's row where there is none, inside BEGIN IMMEDIATE.
insert into election (name) values (?1) on conflict do nothing;
