-- Queries on what belongs to a person: each names exactly one owner, and so touches one partition of each table.

-- name: owner
select incarnation, n from nitka.owners where owner = %s

-- name: lock_owner
select incarnation, n from nitka.owners where owner = %s for no key update

-- name: lock_owner_to_erase
select incarnation, n from nitka.owners where owner = %s for update

-- name: hold_owner
select incarnation from nitka.owners where owner = %s for key share

-- name: add_owner
insert into nitka.owners (owner, incarnation, n) values (%s, %s, 0) on conflict do nothing

-- name: advance_owner
update nitka.owners set n = %s where owner = %s

-- name: session
select session, incarnation, head, body from nitka.sessions where owner = %s and session = %s

-- name: sessions
select session, incarnation, head, body from nitka.sessions where owner = %s and session > %s order by session limit %s

-- name: sessions_of
select session, incarnation, head, body from nitka.sessions where owner = %s and session = any(%s::bytea[])

-- name: add_session
insert into nitka.sessions (owner, session, incarnation, head, body) values (%s, %s, %s, %s, %s) on conflict do nothing

-- name: advance_session
update nitka.sessions set head = %s, body = %s where owner = %s and session = %s

-- name: rows
select seq, n, body from nitka.messages where owner = %s and session = %s and seq >= %s and seq < %s order by seq

-- name: newest_rows
select seq, n, body from nitka.messages
where owner = %(owner)s and session = %(session)s and seq < %(end)s and seq >= greatest(
    coalesce(%(first)s::bigint, (
        select cursor from nitka.folds where owner = %(owner)s and session = %(session)s and kind = %(cursor)s::text
    ), 0),
    (
        select seq from nitka.messages
        where owner = %(owner)s and session = %(session)s and seq < %(end)s and body is not null
        order by seq desc offset %(limit)s - 1 limit 1
    )
)
order by seq

-- name: numbers
select n from nitka.messages
where owner = %(owner)s and session = %(session)s and seq < %(end)s and body is not null and seq >= coalesce(
    %(first)s::bigint, (
        select cursor from nitka.folds where owner = %(owner)s and session = %(session)s and kind = %(cursor)s::text
    ), 0)
order by seq

-- name: person_rows_from
select session, seq, n, body from nitka.messages where owner = %s and n >= %s order by n limit %s

-- name: person_rows
select session, seq, n, body from nitka.messages where owner = %s and n = any(%s::bigint[]) order by n

-- name: add_messages
insert into nitka.messages (owner, session, seq, n, body)
select %s::bytea, %s::bytea, added.seq, added.n, added.body
from unnest(%s::bigint[], %s::bigint[], %s::bytea[]) as added (seq, n, body)

-- name: forget_messages
update nitka.messages set body = null
where owner = %s and session = %s and seq >= %s and seq < %s and body is not null

-- name: turn_key
select seq from nitka.turn_keys where owner = %s and session = %s and key = %s

-- name: pair
select seq, n, body from nitka.messages
where owner = %(owner)s and session = %(session)s
  and seq >= (select seq from nitka.turn_keys where owner = %(owner)s and session = %(session)s and key = %(key)s)
  and seq < 2 + (select seq from nitka.turn_keys where owner = %(owner)s and session = %(session)s and key = %(key)s)
order by seq

-- name: add_turn_key
insert into nitka.turn_keys (owner, session, key, seq) values (%s, %s, %s, %s)

-- name: folds
select session, kind, cursor, version, body from nitka.folds where owner = %s and session = %s and kind = any(%s::text[])

-- name: put_fold
insert into nitka.folds (owner, session, kind, cursor, version, body) values (%s, %s, %s, %s, %s, %s)
on conflict (owner, session, kind) do update
set cursor = excluded.cursor, version = excluded.version, body = excluded.body

-- name: drop_fold
delete from nitka.folds where owner = %s and session = %s and kind = %s

-- name: pieces
select kind, id, body from nitka.pieces where owner = %s and kind = any(%s::text[]) order by kind, id

-- name: put_piece
insert into nitka.pieces (owner, kind, id, body) values (%s, %s, %s, %s)
on conflict (owner, kind, id) do update set body = excluded.body

-- name: drop_piece
delete from nitka.pieces where owner = %s and kind = %s and id = %s

-- name: count_live
select count(*) from nitka.messages where owner = %s and body is not null

-- name: count_live_of_session
select count(*) from nitka.messages where owner = %s and session = %s and body is not null

-- name: erase_session_messages
delete from nitka.messages where owner = %s and session = %s

-- name: erase_session_turn_keys
delete from nitka.turn_keys where owner = %s and session = %s

-- name: erase_session_folds
delete from nitka.folds where owner = %s and session = %s

-- name: erase_session
delete from nitka.sessions where owner = %s and session = %s

-- name: erase_messages
delete from nitka.messages where owner = %s

-- name: erase_turn_keys
delete from nitka.turn_keys where owner = %s

-- name: erase_folds
delete from nitka.folds where owner = %s

-- name: erase_pieces
delete from nitka.pieces where owner = %s

-- name: erase_sessions
delete from nitka.sessions where owner = %s

-- name: erase_owner
delete from nitka.owners where owner = %s
