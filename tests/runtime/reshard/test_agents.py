"""An agent next to a reshard on a real broker: it expands no topic until all state has moved."""

import json
from collections.abc import Callable

import pytest

from headwater.agent.state import Phase
from headwater.kafka import Connection
from headwater.model.problems import ProblemCode
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from tests.agent.running import await_true, running, settings
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_AUTOSCALING = {
    "config": {"partition.autoscaling.enabled": True},
    "setup": {"allowUnsafeExpansion": True},
}


@pytest.fixture
def app(kafka: LocalBroker, unique: Callable[[str], str]) -> StoppedApplication:
    app = StoppedApplication(kafka.bootstrap_servers, Topics(kafka.bootstrap_servers), unique("watched"))
    app.create()
    return app


def test_an_agent_waits_until_an_interrupted_reshard_is_complete(app: StoppedApplication) -> None:
    """Its document permits each expansion. A user expands the source topic instead of the reshard."""
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    assert app.reshard_killed_after(6)
    counts = {topic: app.topics.partitions(topic) for topic in app.internal.values()}
    assert 2 in counts.values()
    assert 5 in counts.values()
    document = json.loads(app.text())
    document["application"] |= _AUTOSCALING
    permitted = load_text(json.dumps(document), "app.yaml").documents
    with running(settings(app.servers, permitted, app.id)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(app.id) is Phase.REFUSED)
        [state] = agent.state.applications.values()
        assert {problem.code for problem in state.problems} == {ProblemCode.OVER_PARTITIONED}
        assert all("run `headwater reshard` again" in problem.fix for problem in state.problems)

        app.topics.expand(app.source, 5)
        await_true(
            lambda: (
                [problem.code for problem in agent.state.applications[app.id].problems]
                == [ProblemCode.UNSAFE_EXPANSION]
            )
        )
        reads = agent.state.reads
        await_true(lambda: agent.state.reads > reads + 2)
        assert {topic: app.topics.partitions(topic) for topic in counts} == counts

        connection = Connection(bootstrap_servers=(app.servers,))
        (own,) = load_text(app.text(), "app.yaml").documents
        reshard_application(own, connection, ReshardOptions(partitions={}), report_no_progress)
        await_true(lambda: agent.phase(app.id) is Phase.STEADY)
    app.check(before, waiting)
