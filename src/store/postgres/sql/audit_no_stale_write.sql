-- Audit: rows of a lower term that the snapshot of the next accepted term did not see: they were committed after it.
-- A later term's snapshot sees whatever an earlier one's does, so the next one is enough. Transaction ids are compared within
-- one system and timeline only; rows that could not be compared are counted and said.
-- $1 examples
with accepted as (
    select h.election, h.term, h.snapshot, h.system_identifier, h.timeline,
           lead(h.snapshot) over w as next_snapshot,
           lead(h.term) over w as next_term,
           lead(h.system_identifier) over w as next_system,
           lead(h.timeline) over w as next_timeline
      from bursar.term_history h
    window w as (partition by h.election order by h.term, h.accepted_at)
), terms as (
    select a.*,
           a.next_term is null or (a.next_system = a.system_identifier and a.next_timeline = a.timeline) as comparable
      from accepted a
), written as (
    select 'run' as kind, r.id, r.election, r.opened_term as term, r.xact from bursar.run r
    union all
    select 'batch', b.id, b.election, b.term, b.xact from bursar.batch b
    union all
    select 'journal', j.id, j.election, j.term, j.xact from bursar.journal j
    union all
    select 'instruction', i.id, i.election, i.term, i.xact from bursar.instruction i
    union all
    -- The end of a unit; one that is pending (again) has no term.
    select 'unit', u.id, u.election, u.term, u.xact from bursar.unit u where u.term is not null
), bad as (
    select format('%s %s of %s was written under term %s after term %s was accepted', w.kind, w.id, w.election, w.term,
                  t.next_term) as what
      from written w
      join terms t on t.election = w.election and t.term = w.term and t.comparable and t.next_term is not null
     where not pg_visible_in_snapshot(w.xact, t.next_snapshot)
), unproven as (
    select w.election, w.term, count(*) as rows
      from written w
      left join terms t on t.election = w.election and t.term = w.term
     where t.term is null or not t.comparable or w.xact is null
     group by w.election, w.term
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       (select format('%s rows of %s terms, whose acceptance or whose successor''s is not on record in this system and timeline (%s)',
                      sum(u.rows), count(*), (array_agg(u.election || ' term ' || u.term order by u.election, u.term))[1:5])
          from unproven u
        having count(*) > 0) as not_proven;
