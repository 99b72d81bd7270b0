-- What all migrations together make; a test proves it. To read, not to run.
-- The log, the folds over it, and the index of due work. What belongs to a person has a primary key that begins with the owner.
-- Columns named body hold sealed bytes; owner, session, key and incarnation are 16 bytes each and say nothing to whoever lacks the keys.

create table meta (
    store blob not null -- the random id that the file of keys carries too
);

create table owners (
    owner blob primary key,
    incarnation blob not null,
    n integer not null -- number of the owner's next row
) without rowid;

create table sessions (
    owner blob not null,
    session blob not null,
    incarnation blob not null,
    head integer not null, -- number of the session's next row
    body blob not null,
    primary key (owner, session)
) without rowid;

create table messages (
    owner blob not null,
    session blob not null,
    seq integer not null,
    n integer not null,
    body blob, -- null: forgotten, only the numbers remain
    primary key (owner, session, seq)
) without rowid;

create unique index messages_by_n on messages (owner, n);

create table turn_keys (
    owner blob not null,
    session blob not null,
    key blob not null,
    seq integer not null, -- of the turn's first row
    primary key (owner, session, key)
) without rowid;

create table folds (
    owner blob not null,
    session blob not null, -- sixteen zeros: the owner's own fold
    kind text not null,
    cursor integer not null,
    version integer not null,
    body blob not null,
    primary key (owner, session, kind)
) without rowid;

-- Directory tables: no content.

create table due (
    owner blob not null,
    session blob not null,
    kind text not null,
    attempts integer not null,
    leased_until integer not null, -- milliseconds; 0: nobody works on it
    retry_at integer not null,
    primary key (owner, session, kind)
) without rowid;

create table erasures (
    owner blob not null,
    incarnation blob not null,
    primary key (owner, incarnation)
) without rowid;

create table spent (
    day integer primary key, -- since 1970-01-01
    tokens integer not null
);

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
