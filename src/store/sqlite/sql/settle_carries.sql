-- Fenced (begin). What is carried to the job's next run. ?1 job, ?2 carries: [external id, merchant, currency, amount, available]
insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
select 'bursar', g.value ->> 0, g.value ->> 1, g.value ->> 2, 'carry', g.value ->> 3, 0, c.now, g.value ->> 4, ?1
  from json_each(?2) g, clock c;
