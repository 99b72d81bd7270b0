-- Queries on the directory tables, which hold no content: due work, unfinished erasures, the day's spending, handles,
-- keys of the server, the outbox; and those that walk over everybody.

-- name: clock
select (extract(epoch from clock_timestamp()) * 1000)::bigint

-- name: add_due
insert into nitka.due (owner, session, kind, attempts, leased_until, retry_at) values (%s, %s, %s, 0, 0, 0)
on conflict do nothing

-- name: done
delete from nitka.due where owner = %s and session = %s and kind = %s

-- name: done_session
delete from nitka.due where owner = %s and session = %s

-- name: done_owner
delete from nitka.due where owner = %s

-- name: due_sessions
select count(*) from (select distinct owner, session from nitka.due) as places

-- name: lease
update nitka.due d set leased_until = %(until)s, attempts = d.attempts + 1
from (
    select owner, session, kind from nitka.due
    where leased_until <= %(now)s and (retry_at <= %(now)s or %(early)s)
    limit %(limit)s for update skip locked
) free
where d.owner = free.owner and d.session = free.session and d.kind = free.kind
returning d.owner, d.session, d.kind, d.attempts - 1

-- name: lease_of_owner
update nitka.due d set leased_until = %(until)s, attempts = d.attempts + 1
from (
    select owner, session, kind from nitka.due
    where owner = %(owner)s and session = coalesce(%(session)s::bytea, session)
      and leased_until <= %(now)s and (retry_at <= %(now)s or %(early)s)
    limit %(limit)s for update skip locked
) free
where d.owner = free.owner and d.session = free.session and d.kind = free.kind
returning d.owner, d.session, d.kind, d.attempts - 1

-- name: put_back
update nitka.due set leased_until = 0, retry_at = %s where owner = %s and session = %s and kind = %s

-- name: rescan
insert into nitka.due (owner, session, kind, attempts, leased_until, retry_at)
select s.owner, s.session, %(kind)s::text, 0, 0, 0
from nitka.sessions s
left join nitka.folds f on f.owner = s.owner and f.session = s.session and f.kind = %(kind)s::text
where s.head - coalesce(f.cursor, 0) > %(lag)s
on conflict do nothing

-- name: rescan_person
insert into nitka.due (owner, session, kind, attempts, leased_until, retry_at)
select o.owner, %(nobody)s::bytea, %(kind)s::text, 0, 0, 0
from nitka.owners o
left join nitka.folds f on f.owner = o.owner and f.session = %(nobody)s::bytea and f.kind = %(kind)s::text
where o.n - coalesce(f.cursor, 0) > %(lag)s
on conflict do nothing

-- name: owners
select owner from nitka.owners where owner > %s order by owner limit %s

-- name: handle
select handle, owner, body from nitka.handles where handle = %s

-- name: handles
select handle, owner, body from nitka.handles where owner = %s order by handle

-- name: add_handle
insert into nitka.handles (handle, owner, body) values (%s, %s, %s) on conflict do nothing

-- name: remove_handle
delete from nitka.handles where owner = %s and handle = %s

-- name: erase_handles
delete from nitka.handles where owner = %s

-- name: api_key
select hash, made, body from nitka.api_keys where hash = %s

-- name: api_keys
select hash, made, body from nitka.api_keys order by made, hash

-- name: add_api_key
insert into nitka.api_keys (hash, made, body) values (%s, %s, %s) on conflict do nothing

-- name: remove_api_key
delete from nitka.api_keys where hash = %s

-- name: add_outbox
insert into nitka.outbox (owner, id, made, body, attempts, leased_until, retry_at) values (%s, %s, %s, %s, %s, 0, 0)
on conflict do nothing

-- name: expire_outbox
delete from nitka.outbox where made < %s

-- name: lease_outbox
update nitka.outbox o set leased_until = %(until)s, attempts = o.attempts + 1
from (
    select owner, id from nitka.outbox where leased_until <= %(now)s and retry_at <= %(now)s
    order by made, owner, id limit %(limit)s for update skip locked
) free
where o.owner = free.owner and o.id = free.id
returning o.owner, o.id, o.made, o.body, o.attempts - 1

-- name: put_back_outbox
update nitka.outbox set leased_until = 0, retry_at = %s where owner = %s and id = %s

-- name: remove_outbox
delete from nitka.outbox where owner = %s and id = %s

-- name: erase_outbox
delete from nitka.outbox where owner = %s

-- name: add_erasure
insert into nitka.erasures (owner, incarnation) values (%s, %s) on conflict do nothing

-- name: erasures
select owner, incarnation from nitka.erasures

-- name: end_erasure
delete from nitka.erasures where owner = %s and incarnation = %s

-- name: spend
insert into nitka.spent as s (day, tokens) values (%s, %s)
on conflict (day) do update set tokens = s.tokens + excluded.tokens returning tokens

-- name: forget_spending
delete from nitka.spent where day < %s

-- name: store_id
select store from nitka.meta

-- name: set_store_id
insert into nitka.meta (store) values (%s) on conflict do nothing

-- name: any_owner
select 1 from nitka.owners limit 1
