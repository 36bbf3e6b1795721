"""Copies of state that are interrupted, undone, or disturbed by the application, on a cluster in memory."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.compiler import compile_document
from headwater.compiler.cluster_profiles import with_profile
from headwater.kafka import Connection
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.cluster_profiles import PROFILES
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode, ProblemsError, errors
from headwater.model.topology import Sink, TopologyDocument
from headwater.operations.observation import Observation
from headwater.spec import load_text
from headwater.spec.policies import load_policies_text
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard import problems, state_copy
from headwater_spark.driver.reshard.copy_plan import TopicCopy, plan_copies
from headwater_spark.driver.reshard.copy_undo import used_topics
from headwater_spark.driver.reshard.journal import Journal, Phase
from headwater_spark.driver.reshard.state_copy import (
    CopyExecution,
    await_new_topics,
    creation_problems,
    incomplete_copies,
    read_copies,
    target_problems,
)
from headwater_spark.engine.records import OutputRecord
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster

_OLD = {"changelog": "app-old-changelog", "repartition": "app-old-repartition"}
_NEW = {"changelog": "app-totals-changelog", "repartition": "app-by-value-repartition"}
_TIME = 1_760_000_000_000


def _document() -> TopologyDocument:
    steps = [
        {"stream": {"topic": "orders"}},
        {"groupBy": {"key": "value", "name": "by-value"}},
        {"count": {"materialized": "totals"}},
    ]
    text = json.dumps({"application": {"id": "app"}, "topology": steps})
    (document,) = load_text(text, "app.yaml").documents
    return document


_DOCUMENT = _document()


def _compiled() -> CompiledApplication:
    return compile_document(_DOCUMENT, {"orders": 2})


def _copies() -> list[TopicCopy]:
    targets = {topic.name: topic for topic in _compiled().internal_topics}
    return [TopicCopy(_OLD[kind], targets[_NEW[kind]], 2) for kind in _OLD]


@pytest.fixture
def cluster() -> ReshardMemoryCluster:
    """Return a cluster whose old topics have entries and unprocessed records; the new ones are empty."""
    cluster = ReshardMemoryCluster({topic: [[], []] for topic in ("orders", *_OLD.values(), *_NEW.values())})
    for number in range(20):
        partition, key = number % 2, b"key %d" % number
        for topic in _OLD.values():
            cluster.write([(topic, partition, key, b"value %d" % number, _TIME + number, (("h", b"1"),))])
    cluster.write([(_OLD["changelog"], 0, b"key 4", None, _TIME, ())])
    for partition in range(2):
        offset = cluster.topics[_OLD["repartition"]][partition][3][2]
        cluster.offsets[_OLD["repartition"], partition] = Committed(offset, "text")
    return cluster


def _copy(cluster: ReshardMemoryCluster, check_stopped: Callable[[], None] = lambda: None) -> None:
    execution = CopyExecution("app", _copies(), cluster, report_no_progress, check_stopped=check_stopped)
    execution.run(dict.fromkeys(_OLD.values()))


def _used(cluster: ReshardMemoryCluster, retention_ms: int | None = None) -> list[str]:
    retentions = dict.fromkeys(_OLD.values(), retention_ms)
    return list(used_topics(_copies(), retentions, cluster, report_no_progress))


def test_a_copy_that_is_killed_at_any_operation_can_be_undone_or_completed(
    cluster: ReshardMemoryCluster,
) -> None:
    cluster.chunk_records = 100
    for operations in range(200):
        cluster.kill_after(operations)
        with suppress(KilledError):
            _copy(cluster)
        cluster.kill_after(None)
        assert _used(cluster) == []
        if list(target_problems(_copies(), cluster)):
            break  # it is complete
        cluster.compact(_NEW["changelog"])
    assert operations > 5
    assert _used(cluster) == []
    texts = {each: found.text for each, found in cluster.offsets.items() if each[0] == _NEW["repartition"]}
    assert texts == dict.fromkeys([(_NEW["repartition"], each) for each in range(2)], "text")
    assert not texts.keys() & cluster.unreadable
    for kind, name in _NEW.items():
        for partition in range(2):
            last = {record[4]: record[3:] for record in cluster.topics[name][partition]}
            offset = cluster.offsets.get((_OLD[kind], partition), Committed(0)).offset or 0
            old = [record for record in cluster.topics[_OLD[kind]][partition] if record[2] >= offset]
            assert {key: value for key, value in last.items() if value[2] is not None} == {
                key: value
                for key, value in {record[4]: record[3:] for record in old}.items()
                if value[2] is not None
            }


@pytest.mark.parametrize(
    "record",
    [
        pytest.param((_NEW["changelog"], 1, b"key 1", b"newer", _TIME, ()), id="a newer entry"),
        pytest.param((_NEW["changelog"], 1, b"key 1", None, _TIME, ()), id="a deleted entry"),
        pytest.param((_NEW["changelog"], 0, b"key 1", b"value 1", _TIME + 1, ()), id="another partition"),
        pytest.param((_NEW["repartition"], 0, b"new", b"value", _TIME, ()), id="a record for a task"),
    ],
)
@pytest.mark.parametrize("retention_ms", [None, 1])
def test_what_the_new_version_has_written_is_never_deleted(
    cluster: ReshardMemoryCluster, record: OutputRecord, retention_ms: int | None
) -> None:
    """Also if retention may delete each entry, so that only their number is compared."""
    _copy(cluster)
    cluster.write([record])
    assert _used(cluster, retention_ms) == [record[0]]


def test_a_copy_of_which_retention_has_deleted_entries_can_be_undone(cluster: ReshardMemoryCluster) -> None:
    _copy(cluster)
    del cluster.topics[_NEW["changelog"]][1][:3]
    assert _used(cluster, retention_ms=1) == []
    assert _used(cluster) == [_NEW["changelog"]]


@pytest.fixture
def two_stores(cluster: ReshardMemoryCluster) -> list[TopicCopy]:
    """Return copies of two stores; the copy to the second one was interrupted, after the first was copied."""
    [first, _] = _copies()
    name = "app-values-changelog"
    cluster.topics["app-numbers-changelog"] = [list(each) for each in cluster.topics[first.source]]
    cluster.topics[name] = [[], []]
    second = TopicCopy("app-numbers-changelog", attrs.evolve(first.target, name=name), 2)
    copies = [first, second]

    def kill_after_first_records() -> None:
        if any(cluster.topics[name]):
            raise KilledError

    cluster.before_operation = kill_after_first_records
    execution = CopyExecution("app", copies, cluster, report_no_progress, check_stopped=lambda: None)
    with pytest.raises(KilledError):
        execution.run({copy.source: None for copy in copies})
    cluster.kill_after(None)
    cluster.topics[name][1].pop()
    return copies


@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_undo_that_has_deleted_one_topic_can_be_completed(
    cluster: ReshardMemoryCluster, two_stores: list[TopicCopy], *, is_deleted: bool
) -> None:
    """Also if only the second store is named: the mark of the first one is not read then."""
    first, second = two_stores
    if is_deleted:
        del cluster.topics[first.target.name]
        cluster.offsets = {
            each: found for each, found in cluster.offsets.items() if each[0] != first.target.name
        }
    assert incomplete_copies([second], cluster) == {second.target.name}
    assert list(target_problems([second], cluster)) == []
    assert used_topics([second], {second.source: None}, cluster, report_no_progress) == []


def test_a_topic_that_a_reshard_moves_is_no_incomplete_copy(cluster: ReshardMemoryCluster) -> None:
    topic = _NEW["changelog"]
    journal = Journal({topic: (2, 4)}, {}, {topic: Phase.COPY})
    cluster.offsets |= {each: Committed(*commit) for each, commit in journal.commits(topic).items()}
    cluster.write([(topic, 0, b"key", b"value", _TIME, ())])
    assert incomplete_copies(_copies(), cluster) == set()
    assert "it has records already" in next(iter(target_problems(_copies(), cluster))).summary


def test_an_incomplete_copy_with_an_entry_of_the_new_version_is_never_deleted(
    cluster: ReshardMemoryCluster,
) -> None:
    cluster.kill_after(6)
    with pytest.raises(KilledError):
        _copy(cluster)
    cluster.kill_after(None)
    cluster.write([(_NEW["changelog"], 1, b"key 1", b"newer", _TIME, ())])
    assert _used(cluster) == [_NEW["changelog"]]


def test_records_that_the_new_version_has_processed_are_never_deleted(cluster: ReshardMemoryCluster) -> None:
    _copy(cluster)
    topic = _NEW["repartition"]
    cluster.offsets[topic, 1] = Committed(cluster.topics[topic][1][1][2], "")
    assert _used(cluster) == [topic]


@pytest.mark.parametrize("is_purged", [True, False])
def test_records_are_not_copied_to_a_topic_that_the_new_version_has_processed(
    cluster: ReshardMemoryCluster, *, is_purged: bool
) -> None:
    """Kafka Streams deletes records of repartition topics that it has processed."""
    topic = _NEW["repartition"]
    cluster.write([(topic, 0, b"key", b"value", _TIME, ()), (topic, 0, b"key", b"value", _TIME, ())])
    cluster.offsets[topic, 0] = Committed(cluster.topics[topic][0][1][2], "")
    if is_purged:
        del cluster.topics[topic][0][0]
    _, copy = _copies()
    [problem] = target_problems([copy], cluster)
    assert "the application has offsets for it already" in problem.summary
    assert _used(cluster) == [topic]


def test_a_copy_is_not_complete_if_the_old_version_has_run(cluster: ReshardMemoryCluster) -> None:
    def start_and_stop() -> None:
        cluster.write([(_OLD["changelog"], 1, b"key 1", b"newer", _TIME, ())])

    with pytest.raises(ProblemsError) as raised:
        _copy(cluster, start_and_stop)
    assert [(each.code, each.topic) for each in raised.value.problems] == [
        (ProblemCode.RESHARD_INCOMPLETE, _OLD["changelog"])
    ]
    _copy(cluster)
    assert cluster.topics[_NEW["changelog"]][1][-1][4:6] == (b"key 1", b"newer")


def test_a_copy_is_not_complete_if_the_old_version_runs(cluster: ReshardMemoryCluster) -> None:
    def is_running() -> None:
        raise ProblemsError([problems.group_active("app", "Stable", 0, has_begun=True)])

    with pytest.raises(ProblemsError, match="its consumer group has members"):
        _copy(cluster, is_running)
    assert not any(cluster.topics[_NEW["repartition"]])
    _copy(cluster)


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("topicPartitions: {max: 1, kinds: [changelog]}", ProblemCode.POLICY_VIOLATED),
        ("topicPartitions: {max: 1, applications: app}", ProblemCode.POLICY_VIOLATED),
        ("blastRadius: {createdTopics: 0}", ProblemCode.BLAST_RADIUS),
        ("blastRadius: {addedPartitions: 1}", ProblemCode.BLAST_RADIUS),
        ("topicPartitions: {max: 1, kinds: [repartition]}", None),
        ("blastRadius: {createdTopics: 1, addedPartitions: 2}", None),
        ("blastRadius: {createdTopics: 0, applications: other}", None),
    ],
)
def test_policies_are_checked_for_created_topics(policy: str, code: ProblemCode | None) -> None:
    loaded = load_policies_text(f"policies:\n  - {policy}\n", "policies.yaml")
    assert loaded.problems == ()
    found = creation_problems(_compiled(), {_NEW["changelog"]}, loaded.policies)
    assert [each.code for each in found] == ([] if code is None else [code])


def test_a_new_topic_with_another_partition_count_is_refused() -> None:
    counts = {**dict.fromkeys(_OLD.values(), 2), _NEW["changelog"]: 3, _NEW["repartition"]: 2}
    copies, [problem] = plan_copies([(_OLD[kind], _NEW[kind]) for kind in _OLD], _compiled(), counts)
    assert [each.target.name for each in copies] == [_NEW["repartition"]]
    assert problem.topic == _NEW["changelog"]
    assert "it has 3 partitions, the old topic 2" in problem.summary


def _answer(cluster: ReshardMemoryCluster, answers: Sequence[int | None]) -> list[int | None]:
    """Let the cluster answer with these partition counts, then the last one; return what is left of them.

    None = the topic is not visible yet.
    """
    left = list(answers)

    def counts(topics: Iterable[str]) -> dict[str, int]:
        count = left.pop(0) if len(left) > 1 else left[0]
        if count is None:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return dict.fromkeys(topics, count)

    cluster.counts = counts  # type: ignore[method-assign]
    return left


def test_new_topics_are_awaited(cluster: ReshardMemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_copy, "_POLL_SECONDS", 0.0)
    left = _answer(cluster, [None, 1, 2, None, 2])
    await_new_topics(_copies(), cluster)
    assert left == [2]


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [(3, ProblemsError, "it has 3 partitions, the old topic 2"), (None, KafkaException, "UNKNOWN_TOPIC")],
)
def test_new_topics_are_not_awaited_for_ever(
    cluster: ReshardMemoryCluster,
    monkeypatch: pytest.MonkeyPatch,
    count: int | None,
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.setattr(state_copy, "_VISIBLE_SECONDS", -1.0)
    _answer(cluster, [count])
    with pytest.raises(error, match=message):
        await_new_topics(_copies(), cluster)


def _refused_on_redpanda() -> tuple[TopologyDocument, CompiledApplication]:
    config = {"topic.min.insync.replicas": "2"}
    declared = attrs.evolve(_DOCUMENT, application=attrs.evolve(_DOCUMENT.application, config=config))
    [document] = with_profile([declared], PROFILES["redpanda"])
    return document, compile_document(document, {"orders": 2})


def test_what_the_cluster_does_not_accept_of_new_topics_refuses_only_new_topics() -> None:
    _, compiled = _refused_on_redpanda()
    found = creation_problems(compiled, {_NEW["changelog"]}, ())
    assert [problem.code for problem in found] == [ProblemCode.NOT_ON_CLUSTER]
    assert creation_problems(compiled, (), ()) == []


def test_settings_of_topics_that_exist_do_not_refuse_a_copy() -> None:
    """Sinks, and internal topics with the same names before and after the rename, are not created."""
    document, compiled = _refused_on_redpanda()
    sink = Sink("out", partitions=2, config={"min.insync.replicas": "2"})
    declared = attrs.evolve(
        document, application=attrs.evolve(document.application, config={}), sinks=(sink,)
    )
    of_sink = compile_document(declared, {"orders": 2})
    assert [problem.topic for problem in errors(of_sink.problems)] == ["out"]
    assert creation_problems(of_sink, {_NEW["changelog"]}, ()) == []
    assert creation_problems(compiled, {"orders-of-another-kind"}, ()) == []


def test_copies_are_read_whatever_the_cluster_accepts_of_new_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """An undo creates no topics."""
    document, compiled = _refused_on_redpanda()
    counts = {"orders": 2, **dict.fromkeys(_OLD.values(), 2)}
    topics = {name: LiveTopic(name, "", count, 1, {}) for name, count in counts.items()}
    observed = Observation([document], (compiled,), ClusterSnapshot("redpanda.1", 1, topics), {})
    monkeypatch.setattr(state_copy, "KafkaClusterReader", lambda _: None)
    monkeypatch.setattr(state_copy, "observe_application", lambda *_, **__: observed)
    renames = [(_OLD[kind], _NEW[kind]) for kind in _OLD]
    _, _, copies, refused = read_copies(Connection(bootstrap_servers=("localhost:9092",)), document, renames)
    assert refused == ()
    assert [(each.source, each.target.name) for each in copies] == renames
