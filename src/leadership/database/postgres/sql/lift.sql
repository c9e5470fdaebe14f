-- Raises the term issued and never lowers it; a trigger holds that too. Safe to repeat.
select bursar.coordinator_lift($1, $2) as issued;
