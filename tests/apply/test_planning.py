"""The plan of a stack: problems of documents, cluster and plan together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.cli.stack_context import StackContext
from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest
from headwater.kafka.reader import GroupsRead
from headwater.model.cluster import ClusterSnapshot
from headwater.model.expansions import AgentExpansion, AgentExpansions
from headwater.model.offset_metadata import MoveMark, MovePhase, OffsetMetadata
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.versions import DEFAULT_VERSION
from headwater.operations.observation import observe_cluster
from headwater.pulumi.planning import Planned, plan_stack
from headwater.pulumi.settings import stack_settings
from headwater.pulumi.stack_state import StackState
from headwater.spec import load_documents
from tests.contract.fake_cluster import COMPACTED, FakeCluster, FakeClusterReader

DOCUMENT = """
application: {id: shop, config: {}}
topology:
  - stream: {topic: orders}
  - groupByKey:
  - count: {materialized: counts}
"""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(DOCUMENT)
    return tmp_path


def planned(documents: Path, reader: FakeClusterReader, records: Mapping[str, SetupRecord]) -> Planned:
    settings = stack_settings({"bootstrapServers": "b:9092", "documents": str(documents)}, environment={})
    return plan_stack(settings, StackState(records=records), lambda _: reader)


def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("orders", 4)
    return cluster


def codes(planned: Planned) -> list[ProblemCode]:
    return [problem.code for problem in errors(planned.problems)]


def test_unreadable_document_is_not_a_removed_application(documents: Path) -> None:
    records = {"shop": SetupRecord("shop", {}, 4), "stock": SetupRecord("stock", {}, 4)}
    assert codes(planned(documents, cluster().reader(), records)) == [ProblemCode.APPLICATION_REMOVED]
    (documents / "stock.yaml").write_text("application: {id: stock")
    assert codes(planned(documents, cluster().reader(), records)) == [ProblemCode.YAML_SYNTAX]


@attrs.frozen
class NoDefaultsReader(FakeClusterReader):
    """Does not return the brokers' default replication factor, as without permission to read it."""

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        return attrs.evolve(FakeClusterReader(self.cluster).read(request), default_replication_factor=None)


def test_unknown_default_replication_factor_must_be_declared(documents: Path) -> None:
    reader = NoDefaultsReader(cluster())
    (problem,) = planned(documents, reader, {}).problems
    assert problem.code is ProblemCode.REPLICATION_FACTOR
    assert "replication.factor" in problem.fix
    (documents / "shop.yaml").write_text(DOCUMENT.replace("{}", "{replication.factor: 1}"))
    assert planned(documents, reader, {}).problems == ()


def test_headwater_plan_requires_the_replication_factor_too(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints the plan of a preview."""
    loaded = load_documents([documents]).documents
    observed = observe_cluster(NoDefaultsReader(cluster()), loaded, None, with_ownership=False)
    monkeypatch.setattr(StackContext, "observe_cluster", lambda *_: observed)
    reader = KafkaClusterReader(Connection(bootstrap_servers=("b:9092",)))  # it connects when it reads
    context = StackContext(documents=loaded, reader=reader, document_problems=())
    monkeypatch.setattr("headwater.cli.plan.load_context", lambda *_, **__: context)
    arguments = ["plan", str(documents), "--bootstrap-server", "b:9092"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == ExitCode.REFUSED


@attrs.frozen
class Unreachable(FakeClusterReader):
    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        raise ProblemsError([Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary=f"{request}")])


def test_document_problems_are_reported_without_a_cluster(documents: Path) -> None:
    (documents / "stock.yaml").write_text("application: {id: stock")
    result = planned(documents, Unreachable(cluster()), {})
    assert result.plan is None
    assert codes(result) == [ProblemCode.YAML_SYNTAX, ProblemCode.CLUSTER_UNREACHABLE]


GROWING = DOCUMENT.replace("config: {}", "processors: 8, config: {processing.guarantee: exactly_once_v2}")
CHANGELOG = "shop-counts-changelog"


@attrs.frozen
class CountingReader(FakeClusterReader):
    """Notes which topics' records were counted; fails if it should."""

    requested: list[Mapping[str, int]] = attrs.field(factory=list)
    fails: bool = False

    def record_counts(self, partitions: Mapping[str, int]) -> Mapping[str, int]:
        self.requested.append(partitions)
        if self.fails:
            raise ProblemsError([Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="no answer")])
        return super().record_counts(partitions)

    def offset_metadata(self, group: str, partitions: Mapping[str, int]) -> Sequence[str]:
        if self.fails:
            raise ProblemsError([Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="no answer")])
        return super().offset_metadata(group, partitions)


class EvidenceReader(FakeClusterReader):
    """Counts the requests for groups: the sets of groups whose offsets were requested, None = all."""

    requested: ClassVar[list[frozenset[str] | None]] = []

    def group_facts(self, offsets_of: frozenset[str] | None) -> GroupsRead:
        self.requested.append(offsets_of)
        return super().group_facts(offsets_of)


def test_groups_are_read_only_if_the_owner_of_a_topic_is_in_question(documents: Path) -> None:
    cluster, requested = FakeCluster(), EvidenceReader.requested
    requested.clear()
    cluster.create("orders", 8)
    reader = EvidenceReader(cluster)
    planned(documents, reader, {})
    assert not requested  # nothing exists
    cluster.create(CHANGELOG, 8, COMPACTED)
    planned(documents, reader, {})
    assert requested == [frozenset()]  # the settings show who created the topic
    cluster.topics[CHANGELOG] = attrs.evolve(cluster.topics[CHANGELOG], config={})
    planned(documents, reader, {})
    assert requested[1:] == [frozenset({"shop", "shop-counts"})]
    requested.clear()
    topic = RecordedTopic(CHANGELOG, cluster.topics[CHANGELOG].topic_id, 8)
    record = SetupRecord("shop", {CHANGELOG: topic})
    planned(documents, reader, {"shop": record})
    assert not requested  # a stack without changes
    (documents / "shop.yaml").unlink()
    planned(documents, reader, {"shop": attrs.evolve(record, retired=True)})
    assert requested == [None]


class JournalReader(FakeClusterReader):
    """Counts the requests for journals of agents."""

    requested: ClassVar[list[Sequence[str]]] = []

    def agent_expansions(self, journals: Sequence[str]) -> AgentExpansions:
        self.requested.append(journals)
        return super().agent_expansions(journals)


def test_journals_of_agents_are_read_only_if_another_client_has_expanded_a_topic(documents: Path) -> None:
    cluster, requested = FakeCluster(), JournalReader.requested
    requested.clear()
    for name, count in (("orders", 8), ("headwater-agent-default", 1), ("headwater-agent-other", 1)):
        cluster.create(name, count)
    cluster.create(CHANGELOG, 8, COMPACTED)
    cluster.expansions = AgentExpansions((AgentExpansion(CHANGELOG, 8, "agent-1", "host-1", "today"),))
    reader = JournalReader(cluster)
    for recorded, read in ((8, []), (4, [["headwater-agent-default", "headwater-agent-other"]])):
        topic = RecordedTopic(CHANGELOG, cluster.topics[CHANGELOG].topic_id, recorded)
        made = planned(documents, reader, {"shop": SetupRecord("shop", {CHANGELOG: topic})})
        assert requested == read
        assert made.plan is not None
        (action,) = made.plan.actions
        assert ("expanded by agent agent-1 on host-1" in action.note) == bool(read)


def notes(documents: Path, reader: FakeClusterReader) -> str:
    made = planned(documents, reader, {})
    assert made.plan is not None
    return "; ".join(made.plan.applications[0].notes)


@pytest.mark.parametrize("partitions", [4, 8])
def test_records_are_counted_for_a_plan_only_if_a_partition_count_is_not_the_required_one(
    documents: Path, partitions: int
) -> None:
    """For the estimate of an expansion of processors, and because a topic without records may be deleted."""
    both = FakeCluster()
    both.create("orders", 8)
    both.create(CHANGELOG, partitions, COMPACTED)
    both.write(CHANGELOG, 1_200_000)
    reader = CountingReader(both)
    (documents / "shop.yaml").write_text(GROWING.replace("{id: shop,", "{id: shop, lifecycle: released,"))
    planned(documents, reader, {})
    assert not reader.requested
    (documents / "shop.yaml").write_text(DOCUMENT)
    planned(documents, reader, {})
    assert reader.requested == ([{CHANGELOG: 4}] if partitions == 4 else [])
    reader.requested.clear()
    (documents / "shop.yaml").write_text(GROWING)
    estimate = "about 1.2 million changelog records to read (about 20 seconds)"
    assert (estimate in notes(documents, reader)) == (partitions == 4)
    assert reader.requested == ([{CHANGELOG: 4}] if partitions == 4 else [])


@pytest.mark.parametrize(("count", "declared"), [(4, None), (None, 4), (None, None)])
def test_the_committed_number_of_processors_is_read(
    documents: Path, count: int | None, declared: int | None
) -> None:
    """Changelog topics keep the partitions of removed processors, or another client has expanded them."""
    wide = FakeCluster()
    wide.create("orders", 8)
    wide.create(CHANGELOG, 8, COMPACTED)
    metadata = OffsetMetadata(3)
    wide.committed["shop"] = {("orders", 5): metadata.encode(0, {}, 1, count=count, declared=declared)}
    (documents / "shop.yaml").write_text(GROWING.replace("processors: 8", "processors: 4"))
    made = planned(documents, FakeClusterReader(wide), {})
    assert made.plan is not None
    if count is None and declared is None:
        assert codes(made) == [ProblemCode.PROCESSOR_COUNT]
    else:
        assert not codes(made)
        _, note, _ = made.plan.applications[0].notes
        assert note == "sub-topology 0: 4 processors for 8 partitions (changelog topics keep 8)"


@pytest.mark.parametrize(("declared", "found"), [(4, [ProblemCode.PROCESSOR_COUNT]), (None, [])])
def test_a_committed_number_that_no_document_declares_is_read_without_a_record(
    documents: Path, declared: int | None, found: list[ProblemCode]
) -> None:
    """The record of a stack decides if there is one: the application may have had processors before."""
    grown = FakeCluster()
    grown.create("orders", 8)
    grown.create(CHANGELOG, 4, COMPACTED)
    grown.committed["shop"] = {("orders", 1): OffsetMetadata(3).encode(0, {}, declared=declared)}
    config = "config: {partition.autoscaling.enabled: true, static.partitioner.class: default}"
    (documents / "shop.yaml").write_text(DOCUMENT.replace("config: {}", config))
    assert codes(planned(documents, FakeClusterReader(grown), {})) == found
    topic = RecordedTopic(CHANGELOG, grown.topics[CHANGELOG].topic_id, 4)
    record = SetupRecord("shop", {CHANGELOG: topic})
    assert codes(planned(documents, FakeClusterReader(grown), {"shop": record})) == []


def test_a_committed_number_is_named_although_the_changelog_topics_have_more_partitions(
    documents: Path,
) -> None:
    wide = FakeCluster()
    wide.create("orders", 16)
    wide.create(CHANGELOG, 8, COMPACTED)
    wide.committed["shop"] = {("orders", 1): OffsetMetadata(3).encode(0, {}, declared=4)}
    config = "config: {partition.autoscaling.enabled: true, static.partitioner.class: default}"
    (documents / "shop.yaml").write_text(DOCUMENT.replace("config: {}", config))
    (problem,) = planned(documents, FakeClusterReader(wide), {}).problems
    assert (problem.code, problem.expected) == (ProblemCode.PROCESSOR_COUNT, "4 processors")


def test_the_numbers_of_an_expansion_that_copies_are_read(documents: Path) -> None:
    """It is announced with the first partition of the changelog topics, which have all partitions already."""
    wide = FakeCluster()
    wide.create("orders", 8)
    wide.create(CHANGELOG, 8, COMPACTED)
    mark = MoveMark(MovePhase.CATCH_UP, 4, 8)
    wide.committed["shop"] = {
        (CHANGELOG, 0): OffsetMetadata().encode(-1, mark=mark),
        ("orders", 5): OffsetMetadata(3).encode(0, {}, 1),
    }
    (documents / "shop.yaml").write_text(GROWING)
    assert "sub-topology 0: 4 of 8 processors for 8 partitions, being expanded to 8" in notes(
        documents, FakeClusterReader(wide)
    )
    wide.committed["shop"]["orders", 5] = OffsetMetadata(3).encode(
        0, {}, 1, attrs.evolve(mark, phase=MovePhase.CLEAR)
    )
    assert "sub-topology 0: 8 processors for 8 partitions" in notes(documents, FakeClusterReader(wide))


def test_offsets_that_cannot_be_read_are_named_in_the_problem(documents: Path) -> None:
    wide = FakeCluster()
    wide.create("orders", 8)
    wide.create(CHANGELOG, 8, COMPACTED)
    (documents / "shop.yaml").write_text(GROWING.replace("processors: 8", "processors: 4"))
    made = planned(documents, CountingReader(wide, fails=True), {})
    assert made.plan is not None
    [problem] = [each for each in made.problems if each.code is ProblemCode.PROCESSOR_COUNT]
    assert problem.why.endswith("could not be read: no answer")


def test_nothing_is_expanded_if_the_journal_of_a_reshard_cannot_be_read(documents: Path) -> None:
    """An expansion that is permitted would let the application start before all state has moved."""
    narrow = FakeCluster()
    narrow.create("orders", 8)
    narrow.create(CHANGELOG, 4, COMPACTED)
    permitted = "{partition.autoscaling.enabled: true}, setup: {allowUnsafeExpansion: true}"
    (documents / "shop.yaml").write_text(DOCUMENT.replace("{}", permitted))
    assert not errors(planned(documents, CountingReader(narrow), {}).problems)
    [problem] = errors(planned(documents, CountingReader(narrow, fails=True), {}).problems)
    assert (problem.code, problem.summary) == (ProblemCode.CLUSTER_UNREACHABLE, "no answer")
    assert "It is not known whether a reshard of shop is complete." in problem.why


def test_records_that_cannot_be_counted_are_no_problem(documents: Path) -> None:
    narrow = FakeCluster()
    narrow.create("orders", 8)
    narrow.create(CHANGELOG, 4, COMPACTED)
    (documents / "shop.yaml").write_text(GROWING)
    assert notes(documents, CountingReader(narrow, fails=True)).count("4 of 8 processors") == 1
    assert "records" not in notes(documents, CountingReader(narrow, fails=True))


JOIN = """
application: {id: shop}
topology:
  - stream: {topic: right, as: right}
  - stream: orders
  - join:
      with: right
      window: {difference: 5s}
      otherStore: {name: mine, retention: 10s, windowSize: 10s}
"""


def test_a_new_default_version_does_not_change_the_topics_of_a_document_without_one(documents: Path) -> None:
    """Kafka Streams 4.3 compacts this changelog, and 4.1 does not."""
    (documents / "shop.yaml").write_text(JOIN)
    reader = cluster().reader()
    reader.cluster.create("right", 4)

    def policy(records: Mapping[str, SetupRecord]) -> tuple[str, list[ProblemCode]]:
        made = planned(documents, reader, records)
        assert made.plan is not None
        (config,) = [a.config for a in made.plan.actions if a.name == "shop-mine-changelog"]
        return config["cleanup.policy"], [
            problem.code for problem in made.problems if problem.code is ProblemCode.MISSING_DETAIL
        ]

    assert policy({"shop": SetupRecord("shop", {}, 4)}) == ("delete", [ProblemCode.MISSING_DETAIL])
    assert policy({"shop": SetupRecord("shop", {}, 4, kafka_streams=str(DEFAULT_VERSION))}) == (
        "compact,delete",
        [],
    )
    assert policy({}) == ("compact,delete", [])
