-- Which way a payout goes, where it has been, and under which name it came back.

-- The address that it was last handed to, whole; null: of a release before this, which kept the origin alone.
alter table instruction add column receiver_url text;
-- A person said that nobody took it from the store: it may be sent although its run left its payouts there.
alter table instruction add column cleared integer not null default 0
    constraint instruction_cleared_is_a_truth check (cleared in (0, 1));
-- The bank's name for the return of what was paid; the payment keeps its own.
alter table instruction add column return_reference text;
