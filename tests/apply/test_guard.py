"""The hook that runs right before each deletion."""

import asyncio
from collections.abc import Awaitable

import attrs
import pulumi
import pytest

from headwater.kafka import SnapshotRequest
from headwater.kafka.reader import GroupsRead
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.records import (
    OwnershipChange,
    OwnershipRecord,
    RecordedTopic,
    SetupRecord,
    StackIdentity,
)
from headwater.planner import PlanPolicy
from headwater.planner.run import Run
from headwater.pulumi.guard import Deletable, DeletionCheck, deletion_guard
from headwater.pulumi.stack_state import ACL_TYPE, TOPIC_TYPE
from tests.contract.fake_cluster import COMPACTED, FakeCluster, FakeClusterReader

CHANGELOG = "orders-counts-changelog"
ACL = "orders/User:orders Read"


def run_hook(
    cluster: FakeCluster, deletable: Deletable, type_: str, name: str, check: DeletionCheck | None = None
) -> None:
    async def call() -> None:
        hook = deletion_guard(deletable, cluster.reader(), check)
        result = hook(pulumi.ResourceHookArgs(urn="urn", id="id", name=name, type=type_))
        assert isinstance(result, Awaitable)
        await result

    # Not `asyncio.run`: it leaves the thread without the event loop that Pulumi's mocks expect.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(call())
    finally:
        loop.close()


@pytest.fixture(autouse=True)
def _up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as in an `up`: other tests of this process may have run a preview before."""
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: False)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create(CHANGELOG, 4, COMPACTED)
    return cluster


def test_a_retired_topic_may_be_deleted(cluster: FakeCluster) -> None:
    retired = Deletable({CHANGELOG: cluster.topics[CHANGELOG].topic_id})
    run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG)


def test_a_topic_that_was_re_created_since_the_plan_is_not_deleted(cluster: FakeCluster) -> None:
    retired = Deletable({CHANGELOG: cluster.topics[CHANGELOG].topic_id})
    cluster.delete(CHANGELOG)
    cluster.create(CHANGELOG, 4)
    with pytest.raises(pulumi.RunError, match="re-created during this run"):
        run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG)


def test_a_topic_that_is_gone_may_leave_the_stack(cluster: FakeCluster) -> None:
    retired = Deletable({CHANGELOG: cluster.topics[CHANGELOG].topic_id})
    cluster.delete(CHANGELOG)
    run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG)


STACK = StackIdentity("first", "organization/headwater/first")


@pytest.fixture
def check(cluster: FakeCluster) -> DeletionCheck:
    """The check of a run whose plan has found that the topic may be deleted."""
    topic = cluster.topics[CHANGELOG]
    record = SetupRecord("orders", {CHANGELOG: RecordedTopic(CHANGELOG, topic.topic_id, 4)}, retired=True)
    owned = OwnershipRecord(
        application_id="orders", stack=STACK, topics={CHANGELOG: topic.topic_id}, is_retired=True
    )
    cluster.write_ownership(OwnershipChange((owned,)))
    snapshot = cluster.reader().read(SnapshotRequest(recorded={CHANGELOG: ""}, with_ownership=True))
    run = Run((), (), snapshot, {"orders": record}, PlanPolicy(stack=STACK))
    return DeletionCheck(run, {CHANGELOG: "orders"}, cluster.reader())


def test_a_topic_that_a_group_reads_since_the_plan_is_not_deleted(
    cluster: FakeCluster, check: DeletionCheck
) -> None:
    retired = Deletable({CHANGELOG: cluster.topics[CHANGELOG].topic_id})
    run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG, check)
    cluster.commit("audit", CHANGELOG, {0: ""})
    with pytest.raises(pulumi.RunError, match=r"is not deleted: it is read by group audit \(Empty\)"):
        run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG, check)


def test_a_topic_whose_record_changed_since_the_plan_is_not_deleted(
    cluster: FakeCluster, check: DeletionCheck
) -> None:
    retired = Deletable({CHANGELOG: cluster.topics[CHANGELOG].topic_id})
    (record,) = cluster.ownership.values()
    cluster.ownership[record.key] = attrs.evolve(record, is_retired=False)
    with pytest.raises(pulumi.RunError, match="says that it was not retired"):
        run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG, check)


class DeafReader(FakeClusterReader):
    """A reader whose cluster no longer answers."""

    def group_facts(self, _: frozenset[str] | None) -> GroupsRead:
        raise ProblemsError([Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="no answer")])


def test_a_topic_whose_evidence_cannot_be_read_again_is_not_deleted(
    cluster: FakeCluster, check: DeletionCheck
) -> None:
    retired = Deletable({CHANGELOG: cluster.topics[CHANGELOG].topic_id})
    deaf = attrs.evolve(check, reader=DeafReader(cluster))
    with pytest.raises(pulumi.RunError, match=r"not readable: .*no answer"):
        run_hook(cluster, retired, TOPIC_TYPE, CHANGELOG, deaf)


def test_other_topics_and_acls_are_not_deleted(cluster: FakeCluster) -> None:
    with pytest.raises(pulumi.RunError, match="only topics of retired applications"):
        run_hook(cluster, Deletable(acls={CHANGELOG}), TOPIC_TYPE, CHANGELOG)
    with pytest.raises(pulumi.RunError, match="the documents require it"):
        run_hook(cluster, Deletable({ACL: "id"}), ACL_TYPE, ACL)
    run_hook(cluster, Deletable(acls={ACL}), ACL_TYPE, ACL)
