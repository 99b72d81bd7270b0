-- Queries on what belongs to a person: each names exactly one owner.

-- name: owner
select incarnation, n from owners where owner = ?

-- name: head
select o.incarnation, o.n, s.session, s.incarnation, s.head, s.body, k.seq
from owners o
left join sessions s on s.owner = o.owner and s.session = :session
left join turn_keys k on k.owner = o.owner and k.session = :session and k.key = :key
where o.owner = :owner

-- name: add_owner
insert into owners (owner, incarnation, n) values (?, ?, 0)

-- name: advance_owner
update owners set n = ? where owner = ?

-- name: session
select session, incarnation, head, body from sessions where owner = ? and session = ?

-- name: sessions
select session, incarnation, head, body from sessions where owner = ? and session > ? order by session limit ?

-- name: add_session
insert into sessions (owner, session, incarnation, head, body) values (?, ?, ?, ?, ?) on conflict do nothing

-- name: advance_session
update sessions set head = ?, body = ? where owner = ? and session = ?

-- name: rows_newest_first
select seq, n, body from messages where owner = ? and session = ? and seq >= ? and seq < ? order by seq desc

-- name: add_message
insert into messages (owner, session, seq, n, body) values (?, ?, ?, ?, ?)

-- name: add_two_messages
insert into messages (owner, session, seq, n, body) values (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)

-- name: forget_messages
update messages set body = null where owner = ? and session = ? and seq >= ? and seq < ? and body is not null

-- name: turn_key
select seq from turn_keys where owner = ? and session = ? and key = ?

-- name: add_turn_key
insert into turn_keys (owner, session, key, seq) values (?, ?, ?, ?)

-- name: folds
select session, kind, cursor, version, body from folds where owner = ? and session = ?

-- name: folds_of_two
select session, kind, cursor, version, body from folds where owner = ? and session in (?, ?)

-- name: put_fold
insert into folds (owner, session, kind, cursor, version, body) values (?, ?, ?, ?, ?, ?)
on conflict do update set cursor = excluded.cursor, version = excluded.version, body = excluded.body

-- name: drop_fold
delete from folds where owner = ? and session = ? and kind = ?

-- name: numbers
select n from messages where owner = ? and session = ? and seq >= ? and seq < ? and body is not null order by seq

-- name: person_rows_from
select session, seq, n, body from messages where owner = ? and n >= ? order by n limit ?

-- name: person_rows
select session, seq, n, body from messages where owner = ? and n in (select value from json_each(?)) order by n

-- name: pieces
select kind, id, body from pieces where owner = ? and kind = ? order by id

-- name: put_piece
insert into pieces (owner, kind, id, body) values (?, ?, ?, ?) on conflict do update set body = excluded.body

-- name: drop_piece
delete from pieces where owner = ? and kind = ? and id = ?

-- name: erase_session_messages
delete from messages where owner = ? and session = ?

-- name: erase_session_turn_keys
delete from turn_keys where owner = ? and session = ?

-- name: erase_session_folds
delete from folds where owner = ? and session = ?

-- name: erase_session
delete from sessions where owner = ? and session = ?

-- name: count_live
select count(*) from messages where owner = ? and body is not null

-- name: count_live_of_session
select count(*) from messages where owner = ? and session = ? and body is not null

-- name: erase_messages
delete from messages where owner = ?

-- name: erase_turn_keys
delete from turn_keys where owner = ?

-- name: erase_folds
delete from folds where owner = ?

-- name: erase_pieces
delete from pieces where owner = ?

-- name: erase_sessions
delete from sessions where owner = ?

-- name: erase_owner
delete from owners where owner = ?
