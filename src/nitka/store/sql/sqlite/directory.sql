-- Queries on the directory tables, which hold no content: due work, unfinished erasures, the day's spending, handles,
-- keys of the server, the outbox; and those that walk over everybody.

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

-- name: rescan_person
insert into due (owner, session, kind, attempts, leased_until, retry_at)
select o.owner, :nobody, :kind, 0, 0, 0
from owners o left join folds f on f.owner = o.owner and f.session = :nobody and f.kind = :kind
where o.n - coalesce(f.cursor, 0) > :lag
on conflict do nothing

-- name: owners
select owner from owners where owner > ? order by owner limit ?

-- name: incarnation
select incarnation from owners where owner = ?

-- name: handle
select handle, owner, body from handles where handle = ?

-- name: handles
select handle, owner, body from handles where owner = ? order by handle

-- name: add_handle
insert into handles (handle, owner, body) values (?, ?, ?) on conflict do nothing

-- name: remove_handle
delete from handles where owner = ? and handle = ?

-- name: erase_handles
delete from handles where owner = ?

-- name: api_key
select hash, made, body from api_keys where hash = ?

-- name: api_keys
select hash, made, body from api_keys order by made, hash

-- name: add_api_key
insert into api_keys (hash, made, body) values (?, ?, ?) on conflict do nothing

-- name: remove_api_key
delete from api_keys where hash = ?

-- name: add_outbox
insert into outbox (owner, id, made, body, attempts, leased_until, retry_at) values (?, ?, ?, ?, ?, 0, 0)
on conflict do nothing

-- name: expire_outbox
delete from outbox where made < ?

-- name: free_outbox
select owner, id, made, body, cast(attempts as integer) from outbox
where leased_until <= :now and retry_at <= :now order by made, owner, id limit :limit

-- name: lease_outbox
update outbox set leased_until = ?, attempts = attempts + 1 where owner = ? and id = ?

-- name: put_back_outbox
update outbox set leased_until = 0, retry_at = ? where owner = ? and id = ?

-- name: remove_outbox
delete from outbox where owner = ? and id = ?

-- name: erase_outbox
delete from outbox where owner = ?

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
