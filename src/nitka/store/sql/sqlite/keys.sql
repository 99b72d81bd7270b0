-- Queries on the file of wrapped keys.

-- name: roots
select root, active, proof from roots

-- name: add_root
insert into roots (root, active, proof) values (?, ?, ?) on conflict do update set active = excluded.active

-- name: deactivate_others
update roots set active = 0 where root <> ?

-- name: is_active
select 1 from roots where root = ? and active = 1

-- name: in_use
select 1 from user_keys where root = :root union all select 1 from tag_keys where root = :root limit 1

-- name: retire_root
delete from roots where root = ? and active = 0

-- name: tag_key
select owner, incarnation, root, wrapped from tag_keys where owner = ?

-- name: add_tag_key
insert into tag_keys (owner, incarnation, root, wrapped) values (?, ?, ?, ?) on conflict do nothing

-- name: user_key
select owner, incarnation, root, wrapped from user_keys where owner = ?

-- name: add_user_key
insert into user_keys (owner, incarnation, root, wrapped) values (?, ?, ?, ?) on conflict do nothing

-- name: remove_user_key
delete from user_keys where owner = ? and incarnation = ?

-- name: user_keys_of_root
select owner, incarnation, root, wrapped from user_keys where root = ? limit ?

-- name: tag_keys_of_root
select owner, incarnation, root, wrapped from tag_keys where root = ? limit ?

-- name: rewrap_user_key
update user_keys set root = ?, wrapped = ? where owner = ? and incarnation = ? and root = ?

-- name: rewrap_tag_key
update tag_keys set root = ?, wrapped = ? where owner = ? and incarnation = ? and root = ?

-- name: store_id
select store from meta

-- name: set_store_id
insert into meta (store) values (?)
