"""Applications of the streams protocol (KIP-1071) on real brokers: the broker creates their internal topics.

`streams_groups/` has the documents, and in `recorded.json` what happened with each version of Kafka, of
broker and library. With `UPDATE_GOLDEN=1` and `HEADWATER_KAFKA=4.3.1`, the test records this version.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from headwater.model.problems import errors
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.launch import broker_tool_command
from headwater.toolchain.broker.readiness import until
from tests.acls.conftest import STREAMS_PROTOCOL
from tests.acls.streams_process import StreamsProcess
from tests.broker_version import BROKER_VERSION, enables_streams_groups, has_streams_groups
from tests.oracle.comparison import compiled, parsed
from tests.oracle.kafka_streams import Run
from tests.oracle.situations import Situation, stored_situations
from tests.pulumi.cluster import Cluster

_FOLDER = Path(__file__).parent / "streams_groups"
_RECORDED = _FOLDER / "recorded.json"
SITUATIONS = dict(stored_situations(_FOLDER))
REFUSED = {
    "source-missing": "MissingSourceTopicException",
    "source-topic-as-changelog-too-small": "TopologyException",
    "sources-not-copartitioned": "TopologyException",
    "unrelated-explicit-counts-differ": "TopologyException",
}
"""The exceptions of Kafka Streams since 4.2."""

_NOT_READY_IN_4_1 = "Topology information is missing"
_SECONDS = 60

Outcome = Mapping[str, Any]


def recorded() -> dict[str, dict[str, Outcome]]:
    """Return version → name of the situation → what happened."""
    content: dict[str, dict[str, Outcome]] = json.loads(_RECORDED.read_text(encoding="utf-8"))
    return content


_VERSIONS = sorted(recorded())


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("name", SITUATIONS)
def test_headwater_plans_the_topics_that_brokers_created(name: str, version: str) -> None:
    outcome, situation = recorded()[version][name], SITUATIONS[name]
    document = parsed(
        {
            **situation.document,
            "application": {**situation.document["application"], "kafkaStreams": version},
        }
    )
    assert not isinstance(document, tuple), document
    ours = compiled(document, Run(document.application.id, situation.clusters[0], "streams"))
    found = errors(ours.problems)
    if outcome["state"] == "Stable":
        assert not found
        assert {
            topic.name: {"partitions": topic.partitions, "config": dict(topic.config)}
            for topic in ours.internal_topics
        } == outcome["topics"]
    else:
        assert outcome["topics"] == {}
        assert found
        assert all(str(outcome["exception"] or "RUNNING") in problem.why for problem in found)


@attrs.frozen
class StreamsGroups:
    """A broker with streams groups, and the tools of its version."""

    cluster: Cluster
    distribution: KafkaDistribution
    process: StreamsProcess

    def outcome(self, situation: Situation, exception: str | None) -> Outcome:
        """Run the application until its group is stable or it is refused, which `exception` expects."""
        application: dict[str, Any] = {**situation.document["application"]}
        application["config"] = {**application.get("config", {}), "group.protocol": "streams"}
        sources, servers = situation.clusters[0], self.cluster.bootstrap_servers
        for topic, partitions in sources.items():
            self.cluster.create(topic, partitions)
        document = {**situation.document, "application": application}
        throws = exception is not None and enables_streams_groups()
        state = "Stable" if exception is None else "NotReady"
        enabling = {} if enables_streams_groups() else {"streamsProtocolAt": servers}
        with self.process.running(document, {"bootstrap.servers": servers}, **enabling) as run:
            if throws:
                run.until(lambda: any(str(exception) in failure for failure in run.failures))
            else:
                run.until(lambda: bool(run.failures) or self._state(application["id"]) == state)
                assert run.failures == []
            topics = self._topics(f"{application['id']}-")
        # The tool of 4.1 describes one group only, whichever is requested.
        assert until(lambda: self.cluster.delete_group(application["id"]), _SECONDS)
        return {
            "state": None if throws else state,
            "exception": exception if throws else None,
            "topics": {name: each for name, each in topics.items() if name not in sources},
        }

    def _topics(self, prefix: str) -> dict[str, Any]:
        return {
            name: {"partitions": self.cluster.partitions(name), "config": self.cluster.config(name)}
            for name in sorted(self.cluster.names())
            if name.startswith(prefix)
        }

    def _state(self, group: str) -> str | None:
        """Return the state of a streams group, which librdkafka does not return."""
        arguments = ("--describe", "--state", "--group", group)
        done = subprocess.run(
            broker_tool_command(
                self.distribution, "streams-groups", self.cluster.bootstrap_servers, arguments
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        if _NOT_READY_IN_4_1 in done.stdout:
            return "NotReady"
        return next((state for state in ("NotReady", "Stable") if state in done.stdout.split()), None)


@pytest.fixture(scope="module")
def streams_groups(
    own_broker: Callable[..., Broker], kafka_distribution: KafkaDistribution
) -> Iterator[StreamsGroups]:
    process = StreamsProcess()
    with own_broker(Settings(overrides=STREAMS_PROTOCOL)) as broker:
        yield StreamsGroups(Cluster(broker.bootstrap_servers), kafka_distribution, process)
        process.close()


@pytest.mark.broker
@pytest.mark.oracle
@pytest.mark.soak
@pytest.mark.every_broker
@pytest.mark.skipif(not has_streams_groups(), reason="brokers have streams groups since 4.1")
@pytest.mark.parametrize("name", SITUATIONS)
def test_the_real_broker_does_what_is_recorded(name: str, streams_groups: StreamsGroups) -> None:
    outcome = streams_groups.outcome(SITUATIONS[name], REFUSED.get(name))
    if "UPDATE_GOLDEN" in os.environ:
        content = recorded()
        content.setdefault(BROKER_VERSION, {})[name] = outcome
        _RECORDED.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert outcome == recorded()[BROKER_VERSION][name]
