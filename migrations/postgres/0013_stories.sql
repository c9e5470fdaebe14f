-- What the story of a term is told from. Noted by the leader, for people: since when it saw the place free, when it won and how,
-- what it took over; terms from before have none of it. And what a term did, along an index.
alter table bursar.term_history
    add column stood_at        timestamptz,
    add column won_at          timestamptz,
    add column handed_over     boolean,
    add column taken_runs      bigint,
    add column taken_set_aside bigint,
    add column taken_unknown   bigint;
create index run_by_term on bursar.run (election, opened_term);
create index batch_by_term on bursar.batch (election, term);
create index journal_end_by_term on bursar.journal (election, term) where kind <> 'settle';
