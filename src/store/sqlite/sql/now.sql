-- The store's time.
select now from clock;
