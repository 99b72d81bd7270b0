"""The names by which channels know a user.

A handle that was never linked is a user of its own; linked, it is its user on every call, in every process. One that
has memory of its own, or is another user's, is refused with counts: two people are never merged by a slip.

Of a link and a first turn under the handle at the same moment one gives way. The link is written first, and what the
handle has of its own is looked at after that; a turn makes what it needs first, and looks at the links after that
(`conversation.open_thread`). What turns that were never answered left is removed, on condition that nothing was
written since it was looked at.
"""

from __future__ import annotations

from nitka import forgetting
from nitka.acts import infos_of
from nitka.conversation import FACTS, Vault, find_owner, known_owner, make_owner
from nitka.errors import AlreadyKnown
from nitka.facts import FACT
from nitka.store.port import Look, View
from nitka.types import Handle, Person, Tag
from nitka.vault import handles
from nitka.vault.keychain import Owner

ANOTHERS = "(Another user's.)"


async def link(vault: Vault, channel: str, handle: str, user: Person) -> Handle:
    """Makes the handle one of the user's, who is made if he is new. Linking twice is harmless.

    Raises `AlreadyKnown`, `BadId`, and `Forgotten` for a user who is being forgotten.
    """
    named = Handle(channel, handle, user.tenant)
    tag = await vault.keychain.owner_id(named)
    whose = await vault.owner_id(named)
    if whose == await vault.owner_id(user):
        return named
    if whose != tag:
        raise AlreadyKnown(ANOTHERS)
    if (own := await known_owner(vault, tag)) is not None:
        await _refuse_known(vault, own, await vault.store.view(known_facts(own)))
    owner = await make_owner(vault, user)
    stands = await vault.store.add_handle(handles.seal_handle(owner, tag, named), owner.incarnation)
    if stands.owner != owner.id:
        raise AlreadyKnown(ANOTHERS)
    try:
        await _clear(vault, tag)
    except AlreadyKnown:
        await vault.store.remove_handle(owner.id, tag)
        raise
    return named


async def unlink(vault: Vault, channel: str, handle: str, user: Person) -> bool:
    """Makes the handle a user of its own again; what was said stays with the user. False where it was not his."""
    tag = await vault.keychain.owner_id(Handle(channel, handle, user.tenant))
    owner = await find_owner(vault, user)
    return owner is not None and await vault.store.remove_handle(owner.id, tag)


async def links(vault: Vault, user: Person) -> tuple[Handle, ...]:
    """The user's handles, by channel. Raises `Damaged`."""
    owner = await find_owner(vault, user)
    if owner is None:
        return ()
    rows = await vault.store.handles(owner.id)
    return tuple(sorted((handles.open_handle(owner, row) for row in rows), key=lambda it: (it.channel, it.id)))


def known_facts(owner: Owner) -> Look:
    """What a view of an owner's facts reads, with the number of his next row."""
    return Look(owner=owner.id, person_folds=(FACTS,), pieces=(FACT,))


async def _refuse_known(vault: Vault, owner: Owner, seen: View) -> None:
    """Raises `AlreadyKnown` if anything is remembered of this owner."""
    infos = await infos_of(vault, owner)
    sessions, messages, known = len(infos), sum(info.messages for info in infos), len(seen.pieces.get(FACT, ()))
    if sessions or known:
        counts = f"({sessions} sessions, {messages} messages, {known} facts.)"
        raise AlreadyKnown(counts, sessions=sessions, messages=messages, facts=known)
    if await vault.store.handles(owner.id):
        raise AlreadyKnown("(Other handles are linked to it.)")


async def _clear(vault: Vault, tag: Tag) -> None:
    """Removes what turns that were never answered left of an owner. Raises `AlreadyKnown` if there is more of him."""
    while (owner := await known_owner(vault, tag)) is not None:
        look = known_facts(owner)
        seen = await vault.store.view(look)
        await _refuse_known(vault, owner, seen)
        if (await vault.store.erase_owner(owner.id, owner.incarnation, still=(look, seen))).owners:
            await forgetting.erase(vault, owner.id, owner.incarnation)
