-- Audit: every check compares whole tables, whose statistics may be older than they are. Wrongly guessed, they would be
-- compared each with each. What keeps the planner from that is a cost beyond all others, for which it would compile each
-- statement first: that takes longer than all checks together.
select set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true), set_config('work_mem', '64MB', true);
