-- Queries on the directory tables, which hold no content: due work, unfinished erasures, the day's spending.

-- name: add_due
insert into due (owner, session, kind, attempts, leased_until, retry_at) values (?, ?, ?, 0, 0, 0) on conflict do nothing

-- name: done
delete from due where owner = ? and session = ? and kind = ?

-- name: done_session
delete from due where owner = ? and session = ?

-- name: done_owner
delete from due where owner = ?

-- name: due_sessions
select count(*) from (select distinct owner, session from due)

-- name: free_due
select owner, session, kind, cast(attempts as integer) from due
where leased_until <= :now and (retry_at <= :now or :early)
  and (:owner is null or owner = :owner) and (:session is null or session = :session)
limit :limit

-- name: lease
update due set leased_until = ?, attempts = attempts + 1 where owner = ? and session = ? and kind = ?

-- name: put_back
update due set leased_until = 0, retry_at = ? where owner = ? and session = ? and kind = ?

-- name: rescan
insert into due (owner, session, kind, attempts, leased_until, retry_at)
select s.owner, s.session, :kind, 0, 0, 0
from sessions s left join folds f on f.owner = s.owner and f.session = s.session and f.kind = :kind
where s.head - coalesce(f.cursor, 0) > :lag
on conflict do nothing

-- name: add_erasure
insert into erasures (owner, incarnation) values (?, ?) on conflict do nothing

-- name: erasures
select owner, incarnation from erasures

-- name: end_erasure
delete from erasures where owner = ? and incarnation = ?

-- name: spend
insert into spent (day, tokens) values (?, ?) on conflict do update set tokens = tokens + excluded.tokens returning tokens

-- name: forget_spending
delete from spent where day < ?

-- name: store_id
select store from meta

-- name: set_store_id
insert into meta (store) values (?)

-- name: any_owner
select 1 from owners limit 1
