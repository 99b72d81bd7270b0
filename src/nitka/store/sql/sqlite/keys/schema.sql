-- What all migrations together make; a test proves it. To read, not to run.
-- Wrapped keys, in a file of their own: without them the data is noise, and removing one forgets a person.

create table meta (
    store blob not null
);

create table roots (
    root blob primary key, -- the id of a root key, not the key
    active integer not null,
    proof blob not null -- a known value sealed by it
) without rowid;

create table tag_keys (
    owner blob primary key, -- the tenant's tag
    incarnation blob not null,
    root blob not null,
    wrapped blob not null
) without rowid;

create table user_keys (
    owner blob primary key,
    incarnation blob not null,
    root blob not null,
    wrapped blob not null
) without rowid;

create index user_keys_by_root on user_keys (root);
