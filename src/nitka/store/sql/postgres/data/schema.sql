-- What all migrations together make; a test proves it. To read, not to run.
-- oldest: 1
-- The log, the folds over it, what belongs to a person, and the directory. As for SQLite, with two things more:
--
-- * Content tables are cut into sixteen by a hash of the owner, the first column of each primary key, so that every
--   query on content touches one partition, of a size that vacuum and index builds finish with.
-- * Sealed columns are stored EXTERNAL: what is sealed does not get smaller, so nobody tries.
--
-- The rows that every turn writes anew, owner and session, are narrow, and their partitions leave room for the new
-- version on the same page, beside which no index has to change.

create schema nitka;

create table nitka.meta (
    one boolean primary key default true check (one),
    store bytea not null
);

create table nitka.owners (
    owner bytea not null,
    incarnation bytea not null,
    n bigint not null,
    primary key (owner)
) partition by hash (owner);

create table nitka.sessions (
    owner bytea not null,
    session bytea not null,
    incarnation bytea not null,
    head bigint not null,
    body bytea not null,
    primary key (owner, session)
) partition by hash (owner);

create table nitka.messages (
    owner bytea not null,
    session bytea not null,
    seq bigint not null,
    n bigint not null,
    body bytea,
    primary key (owner, session, seq)
) partition by hash (owner);

create unique index messages_by_n on nitka.messages (owner, n);

create table nitka.turn_keys (
    owner bytea not null,
    session bytea not null,
    key bytea not null,
    seq bigint not null,
    primary key (owner, session, key)
) partition by hash (owner);

create table nitka.folds (
    owner bytea not null,
    session bytea not null,
    kind text not null,
    cursor bigint not null,
    version bigint not null,
    body bytea not null,
    primary key (owner, session, kind)
) partition by hash (owner);

create table nitka.pieces (
    owner bytea not null,
    kind text not null,
    id bytea not null,
    body bytea not null,
    primary key (owner, kind, id)
) partition by hash (owner);

alter table nitka.sessions alter column body set storage external;
alter table nitka.messages alter column body set storage external;
alter table nitka.folds alter column body set storage external;
alter table nitka.pieces alter column body set storage external;

do $leaves$
declare
    parent text;
    room int;
begin
    foreach parent in array array['owners', 'sessions', 'messages', 'turn_keys', 'folds', 'pieces'] loop
        room := case when parent in ('owners', 'sessions', 'folds') then 70 else 100 end;
        for leaf in 0..15 loop
            execute format(
                'create table nitka.%I partition of nitka.%I for values with (modulus 16, remainder %s) with (fillfactor = %s)',
                parent || '_' || to_char(leaf, 'FM00'), parent, leaf, room
            );
        end loop;
    end loop;
end
$leaves$;

-- Directory tables: no content.

create table nitka.due (
    owner bytea not null,
    session bytea not null,
    kind text not null,
    attempts bigint not null,
    leased_until bigint not null,
    retry_at bigint not null,
    primary key (owner, session, kind)
);

create index due_free on nitka.due (leased_until, retry_at);

create table nitka.erasures (
    owner bytea not null,
    incarnation bytea not null,
    primary key (owner, incarnation)
);

create table nitka.spent (
    day bigint primary key,
    tokens bigint not null
);

create table nitka.handles (
    handle bytea primary key,
    owner bytea not null,
    body bytea not null
);

create index handles_by_owner on nitka.handles (owner);

create table nitka.api_keys (
    hash bytea primary key,
    made bigint not null,
    body bytea not null
);

create table nitka.outbox (
    owner bytea not null,
    id bytea not null,
    made bigint not null,
    body bytea not null,
    attempts bigint not null,
    leased_until bigint not null,
    retry_at bigint not null,
    primary key (owner, id)
);

create index outbox_by_made on nitka.outbox (made);
