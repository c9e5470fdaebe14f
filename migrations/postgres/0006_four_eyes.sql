-- Two pairs of eyes on a person's word on a payout, on releases and on reverted imports.

-- Whether those acts wait. Kept here, so that no configuration of a client's can leave it out.
alter table bursar.deployment
    add column four_eyes boolean not null default false,
    add column four_eyes_act_id bigint references bursar.operator_act;

-- What waits, or waited, for another role. It is carried out in the transaction that approves it.
create table bursar.approval (
    id             bigint      generated always as identity primary key,
    action         text        not null constraint approval_action_is_known
        check (action in ('payouts resolve', 'payouts release', 'imports revert', 'four eyes end')),
    target         text        not null,
    -- The whole of what is asked.
    request        jsonb       not null,
    -- What was found then; compared when it is approved.
    found          text        not null,
    reason         text        not null,
    state          text        not null default 'waiting' constraint approval_state_is_known
        check (state in ('waiting', 'approved', 'rejected', 'withdrawn')),
    role           text        not null default session_user,
    os_user        text        not null,
    host           text        not null,
    at             timestamptz not null default clock_timestamp(),
    act_id         bigint      not null references bursar.operator_act,
    decided_role   text,
    decided_user   text,
    decided_host   text,
    decided_at     timestamptz,
    decided_reason text,
    decided_act_id bigint      references bursar.operator_act,
    decided_xact   xid8,
    constraint approval_decision_is_whole check (
        (state = 'waiting') = (decided_role is null) and (state = 'waiting') = (decided_user is null)
        and (state = 'waiting') = (decided_host is null) and (state = 'waiting') = (decided_at is null)
        and (state = 'waiting') = (decided_act_id is null) and (state = 'waiting') = (decided_xact is null)),
    constraint approval_is_by_another check (state not in ('approved', 'rejected') or decided_role <> role),
    constraint approval_is_withdrawn_by_its_own check (state <> 'withdrawn' or decided_role = role)
);
create index approval_waiting on bursar.approval (action, target) where state = 'waiting';
create index approval_by_xact on bursar.approval (decided_xact);

-- Who asks and who decides is whoever is connected, and what was asked or decided stays as it is.
create function bursar.guard_approval() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        if new.role <> session_user or new.state <> 'waiting' then
            raise exception 'a request is made by % itself, and waits', session_user using errcode = 'BU005';
        end if;
        return new;
    end if;
    if tg_op <> 'UPDATE' then
        raise exception 'requests for approval are never deleted' using errcode = 'BU004';
    end if;
    if old.state <> 'waiting' then
        raise exception 'request % was decided: %', old.id, old.state using errcode = 'BU005';
    end if;
    if (new.id, new.action, new.target, new.request, new.found, new.reason, new.role, new.os_user, new.host, new.at, new.act_id)
       is distinct from
       (old.id, old.action, old.target, old.request, old.found, old.reason, old.role, old.os_user, old.host, old.at, old.act_id) then
        raise exception 'request %: what was asked is final', old.id using errcode = 'BU004';
    end if;
    if new.decided_role <> session_user or new.decided_xact <> pg_current_xact_id() then
        raise exception 'request %: % decides for itself, now', old.id, session_user using errcode = 'BU005';
    end if;
    return new;
end $$;
create trigger approval_is_guarded before insert or update or delete on bursar.approval
    for each row execute function bursar.guard_approval();
create trigger approval_is_never_emptied before truncate on bursar.approval
    for each statement execute function bursar.guard_history();

-- The second line: whoever writes, and with whatever release or configuration, the act itself needs an approval that was
-- given in this very transaction.
create function bursar.guard_four_eyes() returns trigger language plpgsql as $$
begin
    if (select d.four_eyes from bursar.deployment d) and not exists (
        select from bursar.approval a
         where a.decided_xact = pg_current_xact_id()
           and a.state = 'approved'
           and case tg_table_name
                   when 'instruction' then
                       (a.action, a.target) in (('payouts resolve', to_jsonb(new) ->> 'idempotency_key'),
                                                ('payouts release', to_jsonb(new) ->> 'run_id'))
                   when 'import' then (a.action, a.target) = ('imports revert', to_jsonb(new) ->> 'id')
                   else a.action = 'four eyes end'
               end) then
        raise exception '% needs the approval of another role', tg_argv[0] using errcode = 'BU005';
    end if;
    return new;
end $$;
create trigger instruction_word_needs_two before update of resolved_act_id on bursar.instruction
    for each row when (new.resolved_act_id is distinct from old.resolved_act_id)
    execute function bursar.guard_four_eyes('resolving a payout');
create trigger instruction_release_needs_two before update of release on bursar.instruction
    for each row when (new.release = 'released' and old.release <> 'released')
    execute function bursar.guard_four_eyes('releasing a payout');
create trigger import_revert_needs_two before update of reverted_at on bursar.import
    for each row when (new.reverted_at is distinct from old.reverted_at)
    execute function bursar.guard_four_eyes('reverting an import');
-- It reads the row as it still is: two are needed to end that two are needed.
create trigger four_eyes_end_needs_two before update of four_eyes on bursar.deployment
    for each row when (old.four_eyes and not new.four_eyes)
    execute function bursar.guard_four_eyes('ending four eyes');
