"""The hook that runs right before each deletion."""

import asyncio
from collections.abc import Awaitable

import pulumi
import pytest

from infra.apply.guard import Deletable, deletion_guard
from infra.apply.stack_state import ACL_TYPE, TOPIC_TYPE
from tests.contract.fake_cluster import FakeCluster

CHANGELOG = "orders-counts-changelog"
ACL = "orders/User:orders Read"


def run_hook(cluster: FakeCluster, deletable: Deletable, type_: str, name: str) -> None:
    async def call() -> None:
        hook = deletion_guard(deletable, cluster.reader())
        result = hook(pulumi.ResourceHookArgs(urn="urn", id="id", name=name, type=type_))
        assert isinstance(result, Awaitable)
        await result

    # Not `asyncio.run`: it leaves the thread without the event loop that Pulumi's mocks expect.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(call())
    finally:
        loop.close()


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create(CHANGELOG, 4)
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


def test_other_topics_and_acls_are_not_deleted(cluster: FakeCluster) -> None:
    with pytest.raises(pulumi.RunError, match="only topics of retired applications"):
        run_hook(cluster, Deletable(acls={CHANGELOG}), TOPIC_TYPE, CHANGELOG)
    with pytest.raises(pulumi.RunError, match="the documents require it"):
        run_hook(cluster, Deletable({ACL: "id"}), ACL_TYPE, ACL)
    run_hook(cluster, Deletable(acls={ACL}), ACL_TYPE, ACL)
