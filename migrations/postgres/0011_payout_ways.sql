-- Which way a payout goes, where it has been, and under which name it came back; and a person's word on calls.

alter table bursar.instruction
    -- The address that it was last handed to, whole; null: of a release before this, which kept the origin alone.
    add column receiver_url text,
    -- A person said that nobody took it from the store: it may be sent although its run left its payouts there.
    add column cleared boolean not null default false,
    -- The bank's name for the return of what was paid; the payment keeps its own.
    add column return_reference text;

-- The second line: that word, too, needs two where acts wait.
create trigger instruction_clearing_needs_two before update of cleared on bursar.instruction
    for each row when (new.cleared and not old.cleared)
    execute function bursar.guard_four_eyes('releasing a payout');

-- A word on what came of a unit's call needs two as one on a payout does. As before otherwise.
create or replace function bursar.guard_four_eyes() returns trigger language plpgsql as $$
begin
    if (select d.four_eyes from bursar.deployment d) and not exists (
        select from bursar.approval a
         where a.decided_xact = pg_current_xact_id()
           and a.state = 'approved'
           and case tg_table_name
                   when 'instruction' then
                       (a.action, a.target) in (('payouts resolve', to_jsonb(new) ->> 'idempotency_key'),
                                                ('units resolve', to_jsonb(new) ->> 'idempotency_key'),
                                                ('payouts release', to_jsonb(new) ->> 'run_id'))
                   when 'import' then (a.action, a.target) = ('imports revert', to_jsonb(new) ->> 'id')
                   else a.action = 'four eyes end'
               end) then
        raise exception '% needs the approval of another role', tg_argv[0] using errcode = 'BU005';
    end if;
    return new;
end $$;

alter table bursar.approval
    drop constraint approval_action_is_known,
    add constraint approval_action_is_known
        check (action in ('payouts resolve', 'units resolve', 'payouts release', 'imports revert', 'four eyes end'));
