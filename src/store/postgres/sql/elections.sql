-- All elections that the store knows.
select f.election from bursar.fence f
union select j.election from bursar.job j where j.removed_at is null
union select r.election from bursar.run r where r.state in ('planning', 'open')
order by 1;
