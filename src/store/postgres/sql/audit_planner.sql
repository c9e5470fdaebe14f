-- Audit: every check compares whole tables, whose statistics may be older than they are. Wrongly guessed, they would be
-- compared each with each.
select set_config('enable_nestloop', 'off', true), set_config('work_mem', '64MB', true);
