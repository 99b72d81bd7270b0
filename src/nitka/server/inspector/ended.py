"""Sign-ins that were ended before their time, remembered until they would have ended by themselves.

One lies in the store beside the API keys, as a key that may do nothing: so every worker knows of it, every other server
over the same store, and the same server when it starts anew. It is found by a hash of the sign-in's token.
"""

from __future__ import annotations

from nitka.errors import Damaged
from nitka.server import keys
from nitka.server.inspector.tickets import SignIn
from nitka.server.keys import Grant
from nitka.server.service import Service
from nitka.vault.seal import SealKey


async def end(shared: Service, key: SealKey, sign_in: SignIn) -> None:
    """Makes a sign-in worthless, and forgets those that are over anyway."""
    store, now = shared.vault.store, int(shared.clock().timestamp() * 1000)
    mark = Grant(scopes=(), name="signed out", until=sign_in.until * 1000)
    await store.add_api_key(keys.seal(key, _hash(sign_in), now, mark))
    for row in await store.api_keys():
        try:
            grant = keys.unseal(key, row)
        except Damaged:
            continue
        if not grant.scopes and grant.until <= now:
            await store.remove_api_key(row.hash)


async def is_ended(shared: Service, sign_in: SignIn) -> bool:
    return await shared.vault.store.api_key(_hash(sign_in)) is not None


def _hash(sign_in: SignIn) -> bytes:
    return keys.hash_of(f"inspector signed out {sign_in.token}")
