-- Queries on the wrapped keys.

-- name: roots
select root, active, proof from nitka_keys.roots

-- name: lock_roots
lock table nitka_keys.roots in share row exclusive mode

-- name: add_root
insert into nitka_keys.roots (root, active, proof) values (%s, %s, %s)
on conflict (root) do update set active = excluded.active

-- name: deactivate_others
update nitka_keys.roots set active = false where root <> %s and active

-- name: is_active
select 1 from nitka_keys.roots where root = %s and active for share

-- name: in_use
select 1 from nitka_keys.user_keys where root = %(root)s union all
select 1 from nitka_keys.tag_keys where root = %(root)s limit 1

-- name: retire_root
delete from nitka_keys.roots where root = %s and not active

-- name: tag_key
select owner, incarnation, root, wrapped from nitka_keys.tag_keys where owner = %s

-- name: add_tag_key
insert into nitka_keys.tag_keys (owner, incarnation, root, wrapped) values (%s, %s, %s, %s) on conflict do nothing

-- name: user_key
select owner, incarnation, root, wrapped from nitka_keys.user_keys where owner = %s

-- name: add_user_key
insert into nitka_keys.user_keys (owner, incarnation, root, wrapped) values (%s, %s, %s, %s) on conflict do nothing

-- name: remove_user_key
delete from nitka_keys.user_keys where owner = %s and incarnation = %s

-- name: user_keys_of_root
select owner, incarnation, root, wrapped from nitka_keys.user_keys where root = %s limit %s

-- name: tag_keys_of_root
select owner, incarnation, root, wrapped from nitka_keys.tag_keys where root = %s limit %s

-- name: rewrap_user_key
update nitka_keys.user_keys set root = %s, wrapped = %s where owner = %s and incarnation = %s and root = %s

-- name: rewrap_tag_key
update nitka_keys.tag_keys set root = %s, wrapped = %s where owner = %s and incarnation = %s and root = %s

-- name: store_id
select store from nitka_keys.meta

-- name: set_store_id
insert into nitka_keys.meta (store) values (%s) on conflict do nothing
