"""Whom a request is about, and what else headers and bodies may name twice.

A user is named by `X-Nitka-User`, or by `user` in the body. With `X-Nitka-Channel` the name is a handle of that channel
(a number of a messenger, an address): of a handle that was linked its user is meant, else a user of its own.
"""

from __future__ import annotations

from fastapi import Request

from nitka.server.access import Caller, header_text, user_of
from nitka.server.errors import Refusal
from nitka.types import Handle, Person

CHANNEL = "x-nitka-channel"


async def person_of(request: Request, caller: Caller, user: str | None = None) -> Person:
    """The person a request is about. Raises `Refusal`; `BadId` comes later, from the call that uses it."""
    who = await user_of(request, caller, user)
    channel = header_text(request, CHANNEL)
    if channel is None:
        return who
    if caller.is_widget:
        raise Refusal("A widget's key speaks for its visitors alone.", status=403, code="visitor_only")
    return Handle(channel, who.id, who.tenant)


def named(request: Request, header: str, field: str | None, *, what: str) -> str | None:
    """What a header or a field of the body names. Raises `Refusal` where they differ."""
    given = header_text(request, header)
    if given is not None and field is not None and given != field:
        raise Refusal(f"The header {header} and the body differ.", code=f"two_{what}s", param=what)
    return given if given is not None else field
