-- The three roles of bursar in PostgreSQL, each with only what it needs. Run with psql, as a superuser (or a role that may create
-- roles and owns the database), connected to bursar's database:
--
--   psql -d payments -f roles.sql                                     before the first migration: roles, schema
--   bursar --config production.toml migrate                           as bursar_owner
--   psql -d payments -f roles.sql                                     after every migration: rights on what is new
--
-- It can be run at any time, also beside running replicas, and ends with the same rights however often it is. Give the
-- roles that log in passwords of their own (\password bursar_run) or certificates.
--
--   bursar_owner   owns the schema and migrates. Nothing runs under it between migrations.
--   bursar_run     the replicas, and the commands of operators that act. It reads all, and writes what is listed below: no
--                  journal, posting, batch, refusal or act of an operator can be changed or deleted by it, no table be emptied,
--                  no trigger be switched off. Under which role and when an act was done, when an import came, and what was
--                  visible when a term was accepted is written by the server; it cannot say it. All replicas use it. A leader
--                  ends the sessions that hold the fence: those of the one before it, which the server lets a role do to
--                  itself, and those of people under roles of their own, for which it has pg_signal_backend. So it can end
--                  sessions of any database of this server, but none of a superuser; and so can the people below, who have
--                  what it has. It needs no superuser, no ownership.
--   bursar_reader  reads, and sees all sessions and settings (pg_monitor): status, history, audit, lists, reports, exporters.
--
-- People who act get roles of their own, which inherit from bursar_run (create role ada login in role bursar_run): the store records
-- under which role an act was done. Those who look get theirs in bursar_reader. Nobody works as a superuser: a session of one
-- that stands still with the fence keeps every successor out until it ends.
--
-- bursar keeps no account numbers and no names, but merchants and amounts are there for bursar_reader to see.

\set ON_ERROR_STOP on
begin;

select format('create role %I login', name)
  from (values ('bursar_owner'), ('bursar_run'), ('bursar_reader')) as wanted (name)
 where not exists (select from pg_roles r where r.rolname = wanted.name) \gexec

-- Who else may connect to the database is not said here, since others may live in it: the schema is closed to them below.
select format('grant connect on database %I to bursar_owner, bursar_run, bursar_reader', current_database()) \gexec
-- bursar_batch, the view of the handler `sql`, is a temporary one.
select format('grant temporary on database %I to bursar_run', current_database()) \gexec

create schema if not exists bursar authorization bursar_owner;
-- The migrations say `create schema if not exists`, and PostgreSQL asks for the right to create one even where it exists.
select format('grant create on database %I to bursar_owner', current_database()) \gexec
revoke all on schema bursar from public;
grant usage on schema bursar to bursar_run, bursar_reader;

-- What a migration makes can be read at once; the right to write comes from here, table by table.
alter default privileges for role bursar_owner in schema bursar grant select on tables to bursar_run, bursar_reader;
grant select on all tables in schema bursar to bursar_run, bursar_reader;
grant pg_monitor to bursar_reader;
grant pg_signal_backend to bursar_run;

-- Rights of bursar_run on whole tables, beside reading. A table that is not here cannot be written; a test holds that each is here.
create temporary table wanted (name, rights) on commit drop as
values ('schema_migration', ''),
       ('deployment', ''),
       ('fence', 'insert, update'),
       ('term_history', ''),
       ('fence_reject', ''),
       ('job', 'insert, update'),
       ('run', 'insert, update'),
       ('batch', 'insert'),
       ('unit', 'insert, update, delete'),
       ('operator_act', ''),
       ('request', 'insert, update'),
       ('import', ''),
       ('entry', 'insert, update'),
       ('journal', 'insert'),
       ('posting', 'insert'),
       ('instruction', 'insert, update'),
       ('instruction_try', 'insert, update'),
       ('receiver', 'insert, update'),
       ('merchant_hold', 'delete'),
       ('approval', ''),
       ('cordon', 'delete'),
       ('transfer', 'insert, update'),
       ('coordinator_lease', 'insert, update, delete'),
       ('coordinator_election', 'insert, update'),
       ('coordinator_replica', 'insert, update, delete');

-- And column by column where the rest is what the server itself says (who, when, what was visible), or stays as it was written.
-- A column that a migration has yet to make is passed over: the file is run again behind it.
create temporary table wanted_columns (name, verb, columns) on commit drop as
values ('deployment', 'update', '{coordinator_kind, coordinator_prefix, four_eyes, four_eyes_act_id}'::name[]),
       ('term_history', 'insert', '{election, term, tenure_id, replica, host, version, system_identifier, timeline}'),
       ('term_history', 'update', '{worked_at, ended_at, end_reason, stood_at, won_at, handed_over, taken_runs, taken_set_aside,
                                   taken_unknown}'),
       ('fence_reject', 'insert', '{election, term, tenure_id, found_term, found_tenure_id, operation, replica}'),
       ('operator_act', 'insert', '{os_user, host, action, target, reason, election, term, details}'),
       ('import', 'insert', '{source, file_name, sha256, rows, sums, act_id}'),
       ('import', 'update', '{rows, sums, reverted_at, revert_reason, revert_act_id}'),
       ('merchant_hold', 'insert', '{merchant, reason, act_id}'),
       -- Nobody writes it: who relies on a hold locks its row, which takes the right to update any of it.
       ('merchant_hold', 'update', '{reason}'),
       ('approval', 'insert', '{action, target, request, found, reason, os_user, host, act_id}'),
       ('approval', 'update', '{state, decided_role, decided_user, decided_host, decided_at, decided_reason,
                               decided_act_id, decided_xact}'),
       ('cordon', 'insert', '{replica, act_id}');

-- With the right on a table the server takes away those on its columns.
revoke insert, update, delete, truncate, references, trigger on all tables in schema bursar from bursar_run, bursar_reader;
select format('grant %s on bursar.%I to bursar_run', w.rights, w.name)
  from wanted w
 where w.rights <> '' and to_regclass(format('bursar.%I', w.name)) is not null \gexec
select format('grant %s (%s) on bursar.%I to bursar_run', w.verb, string_agg(quote_ident(a.attname), ', '), w.name)
  from wanted_columns w
  join pg_attribute a on a.attrelid = to_regclass(format('bursar.%I', w.name)) and a.attname = any (w.columns)
 group by w.name, w.verb \gexec

commit;

-- Tables that have come with a migration and are not in the list: nothing to see is as it should be.
select c.relname as not_listed_in_roles_sql
  from pg_class c
 where c.relnamespace = 'bursar'::regnamespace and c.relkind in ('r', 'p')
   and not has_any_column_privilege('bursar_run', c.oid, 'insert, update')
   and c.relname <> 'schema_migration';
