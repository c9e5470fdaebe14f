-- What the store was accepted as last; one committed row.
select accepted from election where name = ?1;
