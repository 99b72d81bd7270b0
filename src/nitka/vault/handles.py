"""Whose a handle is.

The tag of a handle (a keyed hash of tenant, channel and name) is also the owner id that it has as long as it is linked
to nobody. A link is a row that says whose it is, in clear, and the name itself, sealed by that user's key and bound to
the tag: a row that anybody else wrote, or moved, is `Damaged` and leads nowhere. It is asked of the store on every
call, so that all processes agree.
"""

from __future__ import annotations

from nitka.errors import Damaged
from nitka.store.port import HandleRow, Store
from nitka.types import Handle, Person, Tag, User
from nitka.vault import codec
from nitka.vault.keychain import Keychain, Owner
from nitka.vault.seal import Kind, Place


async def owner_id(store: Store, keychain: Keychain, who: Person, *, leaving: bool = False) -> bytes:
    """The owner who is meant: of a linked handle its user, also one that is being forgotten and has no key any more
    if `leaving`; of another handle its own. Raises `BadId`, `Damaged`.
    """
    own = await keychain.owner_id(who)
    if isinstance(who, User):
        return own
    fresh = False
    while (row := await store.handle(own)) is not None:
        owner = await keychain.find(row.owner)
        if owner is None:
            return row.owner if leaving else own
        try:
            open_handle(owner, row)
            return owner.id
        except Damaged:
            if fresh:
                raise
            keychain.drop(row.owner)  # the key was opened before a forget; look again
            fresh = True
    return own


def seal_handle(owner: Owner, tag: Tag, handle: Handle) -> HandleRow:
    """The row that makes the handle with this tag one of the owner's."""
    content = {"channel": handle.channel, "id": handle.id, "tenant": handle.tenant}
    return HandleRow(tag, owner.id, owner.key.seal.seal(codec.pack(content), _place(owner, tag)))


def open_handle(owner: Owner, row: HandleRow) -> Handle:
    """The handle as it was linked. Raises `Damaged`."""
    kept: Handle | None = owner.recent.get((Kind.HANDLE, row.handle), row)
    if kept is None:
        content = codec.unpack(owner.key.seal.open(row.body, _place(owner, row.handle)), "handle")
        kept = Handle(content["channel"], content["id"], content["tenant"])
        owner.recent.keep((Kind.HANDLE, row.handle), row, kept)
    return kept


def _place(owner: Owner, tag: Tag) -> Place:
    """A handle's tag stands where a session's incarnation would."""
    return Place(Kind.HANDLE, owner.incarnation, tag)
