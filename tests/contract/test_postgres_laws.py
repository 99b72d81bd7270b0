"""The laws over any course of events, on PostgreSQL; see tests/laws/test_conversation.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from nitka.store.port import Store
from nitka.store.postgres import PostgresStore
from tests.contract.databases import Databases
from tests.laws.test_conversation import Conversations
from tests.laws.world import World

pytestmark = pytest.mark.slow


class OnPostgres(Conversations):
    """Each course of events begins on a database without rows."""

    databases: Databases

    def place(self) -> World:
        return ServedWorld(self.databases.shared())


class ServedWorld(World):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def store(self) -> Store:
        return PostgresStore(self.url, wait=20, size=4, database_clock=False)


@pytest.fixture(autouse=True)
def served(databases: Databases) -> Iterator[None]:
    OnPostgres.databases = databases
    yield


TestOnPostgres = OnPostgres.TestCase
TestOnPostgres.settings = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
