-- Whether the database answers; reads nothing.
select 1 as answer;
