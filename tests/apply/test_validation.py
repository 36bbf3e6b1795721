"""The check of a plan by the brokers, with an admin client that does not answer."""

from concurrent.futures import Future
from typing import Any

import pytest

from headwater.kafka import Connection
from headwater.operations import validation
from tests.planner.simulated_cluster import SimulatedCluster, application


class SilentAdmin:
    """Never answers."""

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, Future[None]]:
        return {topic.topic: Future() for topic in topics}


def test_brokers_that_do_not_answer_refuse_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run itself reports that the cluster does not answer."""
    monkeypatch.setattr(validation, "_SECONDS", 0.01)
    monkeypatch.setattr(validation, "admin_client", lambda _: SilentAdmin())
    plan = SimulatedCluster().plan(application())
    assert list(validation.refusals(Connection(bootstrap_servers=("unused:9092",)), plan)) == []
