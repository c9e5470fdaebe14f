-- All elections that the store knows.
select f.election from fence f
union select j.election from job j where j.removed_at is null
union select r.election from run r where r.state in ('planning', 'open')
order by 1;
