-- oldest: 1
-- Wrapped keys, in a schema of their own and, where it is wanted, in a database of their own: without them the data is
-- noise, and removing one forgets a person.

create schema nitka_keys;

create table nitka_keys.meta (
    one boolean primary key default true check (one),
    store bytea not null
);

create table nitka_keys.roots (
    root bytea primary key,
    active boolean not null,
    proof bytea not null
);

create table nitka_keys.tag_keys (
    owner bytea primary key,
    incarnation bytea not null,
    root bytea not null,
    wrapped bytea not null
);

create table nitka_keys.user_keys (
    owner bytea primary key,
    incarnation bytea not null,
    root bytea not null,
    wrapped bytea not null
);

create index user_keys_by_root on nitka_keys.user_keys (root);
