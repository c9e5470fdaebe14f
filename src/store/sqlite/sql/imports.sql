-- Imports, newest first.
-- ?1 only this one (null: all), ?2 limit
select i.id, i.source, i.file_name, i.sha256, i.rows, i.sums, a.os_user || '@' || a.host as by, i.at, i.reverted_at,
       i.revert_reason
  from import i
  join operator_act a on a.id = i.act_id
 where ?1 is null or i.id = ?1
 order by i.id desc
 limit ?2;
