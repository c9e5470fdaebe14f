-- Audit: rows of a lower term whose transaction has a higher number than the acceptance of the next term: they were written
-- after it. Transactions write one after the other, and each fenced one raises the number; so what was accepted later has a
-- higher number than all that earlier terms wrote, and the next term is enough. Numbers are compared within one file and
-- timeline only; rows that could not be compared are counted and said.
-- ?1 examples
with accepted as (
    select h.election, h.term, h.system_identifier, h.timeline,
           lead(h.fenced_seq) over w as next_seq,
           lead(h.term) over w as next_term,
           lead(h.system_identifier) over w as next_system,
           lead(h.timeline) over w as next_timeline
      from term_history h
    window w as (partition by h.election order by h.term, h.accepted_at)
), terms as materialized (
    select a.*,
           a.next_term is null or (a.next_system = a.system_identifier and a.next_timeline = a.timeline) as comparable
      from accepted a
), written as not materialized (
    select 'run' as kind, r.id, r.election, r.opened_term as term, r.fenced_seq from run r
    union all
    select 'batch', b.id, b.election, b.term, b.fenced_seq from batch b
    union all
    select 'journal', j.id, j.election, j.term, j.fenced_seq from journal j
    union all
    select 'instruction', i.id, i.election, i.term, i.fenced_seq from instruction i
    union all
    -- The end of a unit; one that is pending (again) has no term.
    select 'unit', u.id, u.election, u.term, u.fenced_seq from unit u where u.term is not null
), bad as (
    select format('%s %s of %s was written under term %s after term %s was accepted', w.kind, w.id, w.election, w.term,
                  t.next_term) as what
      from written w
      join terms t on t.election = w.election and t.term = w.term and t.comparable and t.next_term is not null
     where w.fenced_seq >= t.next_seq
), unproven as materialized (
    select w.election, w.term, count(*) as rows
      from written w
      left join terms t on t.election = w.election and t.term = w.term
     where t.term is null or not t.comparable or w.fenced_seq is null
     group by w.election, w.term
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       (select format('%s rows of %s terms, whose acceptance or whose successor''s is not on record in this file and timeline (%s)',
                      sum(u.rows), count(*),
                      (select group_concat(n.name, ', ')
                         from (select u.election || ' term ' || u.term as name from unproven u order by u.election, u.term limit 5) n))
          from unproven u
        having count(*) > 0) as not_proven;
