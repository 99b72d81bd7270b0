-- What somebody does who may write to the files. Each statement stands for itself; `keys.` is the file of wrapped keys.
-- Names: :anna and :boris are owners, :ann_s and :ann_t are Anna's sessions s and t, :bor_s is Boris's session s, :shop and
-- :bank are tenants, :temp is a value that is nobody's.

-- name: a user's key given to another
update keys.user_keys set owner = :temp where owner = :anna;
update keys.user_keys set owner = :anna where owner = :boris;
update keys.user_keys set owner = :boris where owner = :temp;

-- name: all that is a user's exchanged for what is another's
update keys.user_keys set owner = :temp where owner = :anna;
update keys.user_keys set owner = :anna where owner = :boris;
update keys.user_keys set owner = :boris where owner = :temp;
update owners set owner = :temp where owner = :anna;
update owners set owner = :anna where owner = :boris;
update owners set owner = :boris where owner = :temp;
update sessions set owner = :temp where owner = :anna;
update sessions set owner = :anna where owner = :boris;
update sessions set owner = :boris where owner = :temp;
update messages set owner = :temp where owner = :anna;
update messages set owner = :anna where owner = :boris;
update messages set owner = :boris where owner = :temp;
update turn_keys set owner = :temp where owner = :anna;
update turn_keys set owner = :anna where owner = :boris;
update turn_keys set owner = :boris where owner = :temp;
update folds set owner = :temp where owner = :anna;
update folds set owner = :anna where owner = :boris;
update folds set owner = :boris where owner = :temp;
update pieces set owner = :temp where owner = :anna;
update pieces set owner = :anna where owner = :boris;
update pieces set owner = :boris where owner = :temp;
update handles set owner = :temp where owner = :anna;
update handles set owner = :anna where owner = :boris;
update handles set owner = :boris where owner = :temp;

-- name: a tenant's tag key given to another
update keys.tag_keys set (incarnation, root, wrapped) =
  (select incarnation, root, wrapped from keys.tag_keys where owner = :bank) where owner = :shop;

-- name: two sessions exchanged, with all their rows
update sessions set session = :temp where owner = :anna and session = :ann_s;
update sessions set session = :ann_s where owner = :anna and session = :ann_t;
update sessions set session = :ann_t where owner = :anna and session = :temp;
update messages set session = :temp where owner = :anna and session = :ann_s;
update messages set session = :ann_s where owner = :anna and session = :ann_t;
update messages set session = :ann_t where owner = :anna and session = :temp;
update turn_keys set session = :temp where owner = :anna and session = :ann_s;
update turn_keys set session = :ann_s where owner = :anna and session = :ann_t;
update turn_keys set session = :ann_t where owner = :anna and session = :temp;
update folds set session = :temp where owner = :anna and session = :ann_s;
update folds set session = :ann_s where owner = :anna and session = :ann_t;
update folds set session = :ann_t where owner = :anna and session = :temp;

-- name: another's session in the place of one
update sessions set (incarnation, head, body) =
  (select incarnation, head, body from sessions where owner = :boris) where owner = :anna and session = :ann_s;

-- name: all messages emptied
update messages set body = null where owner = :anna and session = :ann_s;

-- name: the newest turn emptied
update messages set body = null where owner = :anna and session = :ann_s and seq >= 14;

-- name: all messages removed
delete from messages where owner = :anna and session = :ann_s;

-- name: the newest turn removed
delete from messages where owner = :anna and session = :ann_s and seq >= 14;

-- name: one message removed
delete from messages where owner = :anna and session = :ann_s and seq = 13;

-- name: messages removed behind the cursor
delete from messages where owner = :anna and session = :ann_s and seq < 14;

-- name: a message in the place of another
update messages set body = (select body from messages where owner = :anna and session = :ann_s and seq = 14)
  where owner = :anna and session = :ann_s and seq = 12;

-- name: a text in the place of sealed bytes
update messages set body = 'text' where owner = :anna and session = :ann_s and seq = 13;

-- name: a number in the place of sealed bytes
update messages set body = 7 where owner = :anna and session = :ann_s and seq = 13;

-- name: a negative n
update messages set n = -5 where owner = :anna and session = :ann_s and seq = 13;

-- name: an n that is a text
update messages set n = 'n' where owner = :anna and session = :ann_s and seq = 13;

-- name: an owner's n taken back
update owners set n = 3 where owner = :anna;

-- name: an owner's n that is a text
update owners set n = 'n' where owner = :anna;

-- name: an owner's n at the end of all numbers
update owners set n = 9223372036854775807 where owner = :anna;

-- name: a head taken back
update sessions set head = 6 where owner = :anna and session = :ann_s;

-- name: a head of nothing
update sessions set head = 0 where owner = :anna and session = :ann_s;

-- name: a head far ahead
update sessions set head = 9223372036854775807 where owner = :anna and session = :ann_s;

-- name: a head that is a text
update sessions set head = 'head' where owner = :anna and session = :ann_s;

-- name: a cursor that is a text
update folds set cursor = 'c' where owner = :anna and session = :ann_s;

-- name: a cursor far ahead
update folds set cursor = 9223372036854775807 where owner = :anna and session = :ann_s;

-- name: a negative version
update folds set version = -1 where owner = :anna and session = :ann_s;

-- name: another session's summary
update folds set (cursor, version, body) =
  (select cursor, version, body from folds where owner = :anna and session = :ann_t and kind = 'summary')
  where owner = :anna and session = :ann_s and kind = 'summary';

-- name: a turn key that leads to another turn with the same question
update turn_keys set seq = 14 where owner = :anna and session = :ann_s and seq = 12;

-- name: turn keys that lead between the turns
update turn_keys set seq = seq + 1 where owner = :anna and session = :ann_s;

-- name: turn keys that lead nowhere
update turn_keys set seq = 'x' where owner = :anna and session = :ann_s;

-- name: work that was tried a negative number of times, on a summary that does not open
update folds set body = x'01' where owner = :anna and session = :ann_s;
insert or replace into due values (:anna, :ann_s, 'summary', -9, 0, 0);

-- name: work that was tried a text of times, on a summary that does not open
update folds set body = x'01' where owner = :anna and session = :ann_s;
insert or replace into due values (:anna, :ann_s, 'summary', 'x', 0, 0);

-- name: work of nobody
insert into due values (:temp, :temp, 'summary', 0, 0, 0);

-- name: work of no kind
insert into due values (:anna, :ann_s, 'nothing', 0, 0, 0);

-- name: work of a person that is of no kind
insert into due values (:anna, x'00000000000000000000000000000000', 'nothing', 0, 0, 0);

-- name: a parcel of nobody's
insert into outbox values (:temp, :temp, 'made', x'01', 'x', 0, 0);

-- name: a handle of nobody's
insert into handles values (:temp, :temp, 7);

-- name: no active root
update keys.roots set active = 0;

-- name: a proof that is a text
update keys.roots set proof = 'proof';

-- name: a wrapped key in the place of a proof
update keys.roots set proof = (select wrapped from keys.user_keys limit 1);

-- name: a root of nobody's
insert into keys.roots values (x'0011223344556677', 1, x'01');

-- name: keys that are of no store
update keys.meta set store = 'store';

-- name: the first tag key removed
delete from keys.tag_keys where owner = x'00000000000000000000000000000000';

-- name: a key's life that is a number
update keys.user_keys set incarnation = 5 where owner = :anna;

-- name: a trigger that empties what is written
create trigger emptied after insert on messages begin update messages set body = null; end;
