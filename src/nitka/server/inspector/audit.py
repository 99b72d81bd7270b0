"""Who looked at whom: one line in the log for each person and each conversation that is opened. No text, no id of a
user: the key's id, the owner's tag (a keyed hash, which nobody can undo or test without the keys), and the time.
"""

from __future__ import annotations

import logging
from datetime import UTC

from nitka.server.inspector.door import Visit
from nitka.vault.keychain import Owner

log = logging.getLogger("nitka.server.audit")


def opened(visit: Visit, what: str, owner: Owner) -> None:
    """Notes that `what` ("person", "conversation") was opened."""
    at = visit.shared.clock().astimezone(UTC)
    log.info("inspector opened %s key=%s owner=%s at=%s", what, visit.key_id, owner.id.hex(), at.isoformat())
