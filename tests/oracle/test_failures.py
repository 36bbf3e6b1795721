"""Replay the recorded failures: where Kafka Streams fails, the plan has the cause with the same counts."""

import json
import re
from collections.abc import Iterable

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import Setup, TopologyDocument
from headwater.planner import PlanPolicy, plan
from tests.oracle.recorded import Case, Json, cases_with

_CODES = (
    ("MissingSourceTopicException", {ProblemCode.MISSING_SOURCE_TOPIC}),
    ("Topics not co-partitioned", {ProblemCode.NOT_COPARTITIONED}),
    ("do not have the same number of partitions", {ProblemCode.CONFLICTING_PARTITIONS}),
    ("doesn't match number of partitions", {ProblemCode.CONFLICTING_PARTITIONS}),
    ("Following changelog topic", {ProblemCode.UNNAMED_RESOURCES}),
    (
        "has invalid partitions",
        {
            ProblemCode.OVER_PARTITIONED,
            ProblemCode.SOURCE_TOPICS_EXPANDED,
            ProblemCode.UNDER_PARTITIONED,
            ProblemCode.EXPLICIT_COUNT_CHANGED,
        },
    ),
    ("Could not create topic", {ProblemCode.REPLICATION_FACTOR, ProblemCode.INVALID_CONFIG}),
)


@attrs.define
class Replay:
    """A cluster that the steps of a recorded case change."""

    document: TopologyDocument
    topics: dict[str, LiveTopic] = attrs.field(factory=dict)
    record: SetupRecord | None = None

    def set_topic(self, name: str, partitions: int, configs: Json | None = None) -> None:
        kept = configs if configs is not None else self.topics[name].config if name in self.topics else {}
        self.topics[name] = LiveTopic(name, f"id-{name}", partitions, 1, kept)

    def errors(self, *, manual: bool = False) -> tuple[Problem, ...]:
        """Return the errors of the plan; with `manual` setup, problems are reported and not repaired."""
        return errors(self.problems(manual=manual))

    def problems(self, *, manual: bool = False) -> tuple[Problem, ...]:
        """Return all problems: only the brokers know whether a topic has too many replicas for them."""
        snapshot = ClusterSnapshot("cluster", 1, dict(self.topics), described=frozenset(self.topics))
        application = self.document.application
        if manual:
            config = {**application.config, "internal.topics.setup": "manual"}
            application = attrs.evolve(
                application, config=config, setup=Setup(if_incomplete=True, adopt=True)
            )
        compiled = compile_document(attrs.evolve(self.document, application=application), snapshot.partitions)
        records = {self.document.application.id: self.record} if self.record else {}
        planned = plan([compiled], snapshot, records, PlanPolicy())
        return (*compiled.problems, *planned.problems)

    def record_setup(self, live: Iterable[Json]) -> None:
        """Record the internal topics that Kafka Streams created as set up."""
        for topic in live:
            self.set_topic(topic["name"], topic["partitions"], topic["configs"])
        recorded = {t["name"]: RecordedTopic(t["name"], f"id-{t['name']}", t["partitions"]) for t in live}
        if recorded:
            self.record = SetupRecord(self.document.application.id, recorded, 1)


@pytest.mark.parametrize("case", cases_with("failure.json"), ids=lambda case: case.name)
def test_plan_refuses_the_causes_of_kafka_streams_failures(case: Case) -> None:
    replay = Replay(case.document())
    for step in json.loads(case.text("failure.json").replace("<app>", case.name))["steps"]:
        if "topic" in step and "partitions" in step:
            replay.set_topic(step["topic"], step["partitions"], step.get("configs"))
        elif "topic" in step:
            del replay.topics[step["topic"]]
        elif "exception" in step:
            _same_reason(step["exception"], replay.problems())
        elif step.get("state") == "RUNNING":
            _refusals_only_prevent_silent_data_loss(replay.errors())
            replay.record_setup(step["internal_topics"])
        elif "misconfigurations" in step:
            _same_validation(step, replay.errors(manual=True))


def _same_reason(exception: Json, found: tuple[Problem, ...]) -> None:
    """Assert that the problem has the same code, topics and counts as the exception."""
    thrown = f"{exception['class']} {exception['message']}"
    codes = next(codes for text, codes in _CODES if text in thrown)
    matching = [problem for problem in found if problem.code in codes]
    assert matching, found
    words = {word for problem in matching for word in re.findall(r"[\w.-]+", str(attrs.astuple(problem)))}
    for topic, count in re.findall(r"([\w-]+)=(\d+)", thrown):
        assert {topic, count} <= words
    for topic, expected, actual in re.findall(r"topic (\S+) has .*expected: (\d+); actual: (\d+)", thrown):
        assert {topic, expected, actual} <= words


def _refusals_only_prevent_silent_data_loss(found: tuple[Problem, ...]) -> None:
    """Assert that Headwater refuses more than Kafka Streams only where data would be lost silently."""
    silent = {
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        ProblemCode.MISSING_INTERNAL_TOPICS,
        ProblemCode.OWNER_NOT_PROVEN,  # a topic with other settings may be one of another client
    }
    assert {problem.code for problem in found} <= silent, found


def _same_validation(step: Json, found: tuple[Problem, ...]) -> None:
    """Assert the result of `InternalTopicManager#validate`, without the default retention.bytes."""
    wrong = {
        topic
        for topic, faults in step["misconfigurations"].items()
        if any("retention.bytes" not in fault and "partitions" not in fault for fault in faults)
    }
    changed = {p.topic for p in found if p.code is ProblemCode.MISCONFIGURED_INTERNAL_TOPIC}
    assert changed == wrong
