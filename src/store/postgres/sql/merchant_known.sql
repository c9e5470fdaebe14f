-- Whether any entry of a merchant has ever come in; the open ones are looked at by their index first. Reads only, for people.
-- $1 merchant
select exists (select 1 from bursar.entry e where e.merchant = $1 and e.unit_id is null and e.withdrawn_at is null)
    or exists (select 1 from bursar.entry e where e.merchant = $1) as known;
