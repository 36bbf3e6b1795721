"""What the ownership records on the cluster must say before a topic is deleted or retired."""

import attrs
import pytest

from headwater.model.cluster import LiveTopic
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.planner.evidence.deletion import Claim, deletion_obstacles
from headwater.planner.evidence.topics import TopicEvidence
from headwater.planner.ownership import Ownership
from tests.planner.evidence_values import CHANGELOG
from tests.planner.simulated_cluster import COMPACTED, SimulatedCluster

_ID = "id of the topic"
_LIVE = LiveTopic(CHANGELOG, _ID, 4, 1, COMPACTED)
_STACK = StackIdentity("0d6a", "organization/headwater/first")
_CLAIMED = OwnershipRecord(application_id="orders", stack=_STACK, topics={CHANGELOG: _ID})
_RETIRED = attrs.evolve(_CLAIMED, is_retired=True)
_ONE_RETIRED = attrs.evolve(_CLAIMED, retired_topics=frozenset({CHANGELOG}))
_EVIDENCE = TopicEvidence(
    topic=CHANGELOG,
    application="orders",
    is_recorded=True,
    recorded_by=(),
    readers=(),
    others={},
    known=frozenset(),
    is_created_by_streams=True,
    is_read_by_own_group=False,
    is_subscribed_by_own_group=False,
    unread=(),
)


def obstacles(
    record: OwnershipRecord | None, *, is_prepared: bool, is_recorded: bool = True, policy: str = "compact"
) -> list[str]:
    records = [] if record is None else [record]
    snapshot = attrs.evolve(SimulatedCluster().snapshot, topics={CHANGELOG: _LIVE})
    ownership = Ownership.from_records(records, snapshot, _STACK, frozenset({"orders"}))
    claim = Claim(ownership=ownership, policy=policy, is_prepared=is_prepared, is_recorded=is_recorded)
    return [each.text for each in deletion_obstacles(_EVIDENCE, _LIVE, claim)]


@pytest.mark.parametrize("record", [_RETIRED, _ONE_RETIRED], ids=["the application", "the topic"])
def test_a_topic_whose_retirement_is_recorded_may_be_deleted(record: OwnershipRecord) -> None:
    assert obstacles(record, is_prepared=True) == []


@pytest.mark.parametrize(
    ("record", "obstacle"),
    [
        pytest.param(None, "no ownership record on the cluster says that it was retired", id="no record"),
        pytest.param(
            _CLAIMED, "the ownership record on the cluster says that it was not retired", id="not retired"
        ),
        pytest.param(
            attrs.evolve(_CLAIMED, retired_topics=frozenset({"orders-other-changelog"})),
            "the ownership record on the cluster says that it was not retired",
            id="another topic is retired",
        ),
        *(
            pytest.param(
                attrs.evolve(record, topics=topics),
                "the ownership record on the cluster does not contain its topic id",
                id=f"{'the application' if record.is_retired else 'the topic'} with {topics}",
            )
            for record in (_RETIRED, _ONE_RETIRED)
            for topics in ({CHANGELOG: "another id"}, {CHANGELOG: ""}, {})
        ),
    ],
)
def test_each_difference_from_the_ownership_record_prevents_a_deletion(
    record: OwnershipRecord | None, obstacle: str
) -> None:
    assert obstacles(record, is_prepared=True) == [obstacle]


@pytest.mark.parametrize("policy", ["delete", "compact,delete", ""])
def test_a_deletion_needs_a_topic_that_keeps_the_ownership_records(policy: str) -> None:
    (obstacle,) = obstacles(_RETIRED, is_prepared=True, policy=policy)
    assert "may have lost some" in obstacle
    # Without a record, the missing record is the reason.
    (missing,) = obstacles(None, is_prepared=True, policy=policy)
    assert "no ownership record" in missing
    # A preparation deletes nothing.
    assert obstacles(_CLAIMED, is_prepared=False, policy=policy) == []


def test_a_preparation_needs_a_topic_that_the_ownership_record_contains() -> None:
    other = attrs.evolve(_CLAIMED, topics={"orders-other-changelog": _ID})
    assert obstacles(_CLAIMED, is_prepared=False) == []
    assert obstacles(other, is_prepared=False) == [
        "the stack's ownership record on the cluster does not contain it"
    ]


def test_a_left_over_topic_that_no_run_has_recorded_can_be_prepared() -> None:
    other = attrs.evolve(_CLAIMED, topics={"orders-other-changelog": _ID})
    assert obstacles(other, is_prepared=False, is_recorded=False) == []
    # The records may not exist yet: the run that prepares the deletion writes them.
    assert obstacles(None, is_prepared=False) == []


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_stack_without_ownership_records_checks_none(*, is_prepared: bool) -> None:
    claim = Claim(ownership=None, policy="", is_prepared=is_prepared)
    assert list(deletion_obstacles(_EVIDENCE, _LIVE, claim)) == []
