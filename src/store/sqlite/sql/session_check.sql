-- What a connection really has.
select (select synchronous from pragma_synchronous) as synchronous,
       (select foreign_keys from pragma_foreign_keys) as foreign_keys,
       (select journal_mode from pragma_journal_mode) as journal;
