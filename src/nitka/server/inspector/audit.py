"""Who looked at whom: one line in the log for each page that shows what is kept of a person, each time it is shown. No
text, no id of a user or a conversation: the page by the template of its route, the key's id, the owner's tag (a keyed
hash, which nobody can undo or test without the keys), and the time.
"""

from __future__ import annotations

import logging
from datetime import UTC

from nitka.server.inspector.door import Visit
from nitka.vault.keychain import Owner

log = logging.getLogger("nitka.server.audit")


def shown(visit: Visit, owner: Owner) -> None:
    """Notes that the page which is asked for shows what is kept of `owner`."""
    at, page = visit.shared.clock().astimezone(UTC), visit.request.scope["route"].path
    log.info("inspector showed %s key=%s owner=%s at=%s", page, visit.key_id, owner.id.hex(), at.isoformat())
