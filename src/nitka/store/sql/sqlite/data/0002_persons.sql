-- What belongs to a person and not to one session: the parts of the states of his folds, the names by which channels
-- know him, what is to be delivered elsewhere. And the keys of the server.

create table pieces (
    owner blob not null,
    kind text not null,
    id blob not null, -- 16 bytes: a keyed hash, or a number
    body blob not null,
    primary key (owner, kind, id)
) without rowid;

-- Directory tables: no content.

create table handles (
    handle blob primary key, -- tag of tenant, channel and handle
    owner blob not null,
    body blob not null
) without rowid;

create index handles_by_owner on handles (owner);

create table api_keys (
    hash blob primary key, -- of the secret
    made integer not null, -- milliseconds
    body blob not null
) without rowid;

create table outbox (
    owner blob not null,
    id blob not null,
    made integer not null, -- milliseconds
    body blob not null,
    attempts integer not null,
    leased_until integer not null, -- milliseconds; 0: nobody delivers it
    retry_at integer not null,
    primary key (owner, id)
) without rowid;

create index outbox_by_made on outbox (made);
