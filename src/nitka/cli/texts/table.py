"""The fields of a table of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """One language. `{…}` are filled in."""

    # errors
    error: str
    unexpected: str
    no_store: str
    ask_yes: str
    errors: Mapping[str, str] = field(default_factory=dict)  # by class; English needs none, its errors say it
    details: Mapping[str, str] = field(default_factory=dict)  # by how it begins in English: what errors of ours add
    usage: Mapping[str, str] = field(default_factory=dict)  # by class of the option parser's errors
    hints: Mapping[str, str]  # what to do, by class; a few by what stands in the code

    # the first screen of a chat: four lines, and one for a conversation that goes on
    offline: str
    online: str
    where_data: str
    where_key: str
    key_made: str
    key_environment: str
    try_this: str
    continued: str
    damaged_sessions: str

    # chat
    you: str
    help: str
    unknown_command: str
    new_session: str
    stopped: str
    stopped_early: str
    broke_off: str
    leave_hint: str
    replayed: str
    fold_failed: str
    no_summary: str
    summary_foot: str
    no_facts: str
    no_such_fact: str
    facts_head: tuple[str, str, str, str, str, str]
    taken_back: str
    former: str
    by_hand: str
    confirm_session: str
    confirm_user: str
    confirm_turn: str
    confirm_fact: str
    confirm_about: str
    yes: str  # accepted answers, separated by blanks; whatever else means no
    kept: str

    # receipts
    no_receipt: str
    why_title: str
    why_head: tuple[str, str, str]
    total: str
    counted: str
    summary_covers: str
    layers: Mapping[str, str]
    outcomes: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)  # of receipts, as patterns; English needs none

    # export
    user: str
    assistant: str
    session: str
    cut_off: str
    session_damaged: str
    unreadable: str
    unreadable_made: str
    unreadable_rows: str
    summary: str
    profile: str
    fact: str
    other: str
    nothing_stored: str
    written: str
    file_exists: str

    # forget, settle, keys, backup
    nothing_to_forget: str
    forgotten: str
    forgotten_handles: str
    still_said: str
    pending: str
    settled: str
    expired: str
    settle_failed: str
    settle_left: str
    settling: str
    working: str
    store_away: str
    store_back: str
    rotating: str
    rotated: str
    rotated_damaged: str
    retired: str
    retired_kept: str
    retired_environment: str
    key_active: str
    key_kept: str
    key_elsewhere: str
    backing_up: str
    backed_up: str
    backup_keys: str
    backup_environment: str
    backup_elsewhere: str
    copying: str
    copied: str

    # serve, API keys
    no_api_keys: str
    api_key_made: str
    signing_made: str
    api_key_revoked: str
    no_such_api_key: str

    # demo
    demo_what: str
    demo_folder: str
    demo_open: str
    port_busy: str
    cannot_listen: str

    # doctor
    good: str
    bad: str
    note: str
    checks: Mapping[str, str]
    advice: Mapping[str, str]
    all_well: str
    not_well: str
