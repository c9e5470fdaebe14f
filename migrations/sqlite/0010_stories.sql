-- What the story of a term is told from. Noted by the leader, for people: since when it saw the place free, when it won and how,
-- what it took over; terms from before have none of it. And what a term did, along an index.
alter table term_history add column stood_at integer;
alter table term_history add column won_at integer;
alter table term_history add column handed_over integer;
alter table term_history add column taken_runs integer;
alter table term_history add column taken_set_aside integer;
alter table term_history add column taken_unknown integer;
create index run_by_term on run (election, opened_term);
create index batch_by_term on batch (election, term);
create index journal_end_by_term on journal (election, term) where kind <> 'settle';
