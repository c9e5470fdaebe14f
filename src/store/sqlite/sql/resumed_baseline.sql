-- Where the store stood when an operator last took a halt of the election back, and when that was. ?1 election
select a.details ->> 'lineage' as lineage, a.at
  from operator_act a
 where a.action = 'resume'
   and a.election = ?1
   and not coalesce(a.details ->> 'already', 0)
   and a.details ->> 'lineage' is not null
 order by a.id desc
 limit 1;
