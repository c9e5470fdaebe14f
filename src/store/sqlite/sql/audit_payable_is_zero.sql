-- Audit: merchants who are owed something after a unit. Sums in halves, as audit_nets_follow_from_entries.sql says.
-- ?1 examples
with bad as (
    select format('journal %s leaves %s %s payable to %s', l.journal_id,
                  char(1) || sum(l.amount >> 32) || ':' || sum(l.amount & 4294967295) || char(1), l.currency, l.owner) as what
      from ledger_line l
     where l.kind = 'payable'
     group by l.journal_id, l.owner, l.currency
    having sum(l.amount >> 32) + (sum(l.amount & 4294967295) >> 32) <> 0
        or (sum(l.amount & 4294967295) & 4294967295) <> 0
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
