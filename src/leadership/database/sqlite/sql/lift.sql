-- Raises the term issued and never lowers it, inside BEGIN IMMEDIATE; a trigger holds that too.
update election set revision = revision + 2, term = ?2, term_revision = revision + 2 where name = ?1 and term < ?2;
