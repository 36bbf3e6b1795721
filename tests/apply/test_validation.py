"""The check of a plan by the brokers, with an admin client that does not answer."""

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

import pytest

from headwater.operations import validation
from tests.planner.simulated_cluster import SimulatedCluster, application

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient


class SilentAdmin:
    """Never answers."""

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, Future[None]]:
        return {topic.topic: Future() for topic in topics}


def test_brokers_that_do_not_answer_refuse_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run itself reports that the cluster does not answer."""
    monkeypatch.setattr(validation, "_SECONDS", 0.01)
    plan = SimulatedCluster().plan(application())
    assert list(validation.refusals(cast("AdminClient", SilentAdmin()), plan, with_permissions=True)) == []
