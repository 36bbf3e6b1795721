"""Records of the ownership topic that are not readable: which runs they refuse, and what becomes of them."""

import attrs
import pytest
from confluent_kafka import KafkaError

from headwater.kafka.evidence import with_evidence
from headwater.kafka.ownership import ownership_problem
from headwater.model.acls import Operation
from headwater.model.cluster import EvidenceRequest, EvidenceSource, UnreadCause
from headwater.model.problems import Problem, ProblemCode, ProblemsError, Severity
from headwater.model.records import OWNERSHIP_TOPIC, RECORD_TOPIC_SETTINGS, OwnershipLog, OwnershipTopic
from headwater.model.topology import Setup
from headwater.model.untrusted import UnreadReason
from headwater.planner import Plan, PlanPolicy, plan
from headwater.planner.claims import change_before
from headwater.planner.evidence.topics import unread_text
from tests.contract.fake_cluster import FakeCluster, FakeClusterReader
from tests.planner.ownership_scenarios import STACK, unread, unsafe_records, with_topic
from tests.planner.simulated_cluster import SimulatedCluster, application

OTHER_STACK, OWN = ("another id", "orders"), (STACK.id, "orders")
SAFE = {**RECORD_TOPIC_SETTINGS, "min.insync.replicas": "2"}


def problems(planned: Plan, code: ProblemCode = ProblemCode.UNREADABLE_RECORD) -> list[Problem]:
    return [problem for problem in planned.problems if problem.code is code]


def planned(reason: UnreadReason, key: tuple[str, str] | None, *, take_over: bool = False) -> Plan:
    topic = OwnershipTopic(SAFE, 3, (unread(reason, key),))
    return with_topic(topic, application(setup=Setup(take_over=take_over)))


@pytest.mark.parametrize(
    ("reason", "key", "is_refused"),
    [
        (UnreadReason.TOO_LARGE, None, False),
        (UnreadReason.NOT_OURS, None, False),
        (UnreadReason.NOT_OURS, ("another id", "sales"), False),
        (UnreadReason.LATER_FORMAT, ("another id", "sales"), False),
        (UnreadReason.NOT_OURS, OTHER_STACK, True),
        (UnreadReason.OTHER_KEY, OTHER_STACK, True),
        (UnreadReason.LATER_FORMAT, OTHER_STACK, True),
        (UnreadReason.NOT_OURS, OWN, False),
        (UnreadReason.LATER_FORMAT, OWN, True),
    ],
)
def test_only_a_record_that_may_hide_another_owner_or_a_later_version_refuses_the_run(
    reason: UnreadReason, key: tuple[str, str] | None, is_refused: object
) -> None:
    plan = planned(reason, key)
    [problem] = problems(plan)
    assert (problem.severity is Severity.ERROR) is bool(is_refused)
    assert plan.is_applicable is not bool(is_refused)
    assert "headwater-ownership, partition 0, offset 41" in problem.summary


def test_taking_over_deletes_the_record_that_may_hide_another_owner() -> None:
    plan = planned(UnreadReason.NOT_OURS, OTHER_STACK, take_over=True)
    assert plan.is_applicable
    assert plan.ownership is not None
    assert change_before(plan, plan.ownership).deleted == (OTHER_STACK,)


def test_an_own_record_that_is_damaged_is_written_again() -> None:
    plan = planned(UnreadReason.NOT_OURS, OWN)
    assert plan.ownership is not None
    assert [record.key for record in change_before(plan, plan.ownership).written] == [OWN]


def test_records_of_others_are_not_replaced_or_deleted() -> None:
    plan = planned(UnreadReason.LATER_FORMAT, ("another id", "sales"))
    assert plan.ownership is not None
    change = change_before(plan, plan.ownership)
    assert {record.key for record in change.written} <= {OWN}
    assert not change.deleted


def test_a_record_that_is_not_readable_is_evidence_that_is_missing() -> None:
    cluster, simulated = FakeCluster(), SimulatedCluster.set_up(application())
    topic = OwnershipTopic(unread=(unread(UnreadReason.TOO_LARGE),))
    snapshot = attrs.evolve(simulated.snapshot, ownership=(), ownership_topic=topic, evidence=None)
    request = EvidenceRequest(topics=frozenset({"a"}), with_ownership=True)
    found = with_evidence(cluster.reader(), snapshot, request).evidence
    assert found is not None
    [record] = found.unread
    assert (record.source, record.cause) == (EvidenceSource.OWNERSHIP_RECORD, UnreadCause.NOT_USABLE)
    assert unread_text([record]) == "not readable: a record in headwater-ownership, partition 0, offset 41"


class DeniedReader(FakeClusterReader):
    """A reader whose user may not read the topic of the ownership records."""

    def read_ownership(self) -> OwnershipLog:
        denial = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        raise ProblemsError([ownership_problem(denial, Operation.READ)])


def test_ownership_records_that_the_user_may_not_read_are_evidence_that_is_missing() -> None:
    cluster = FakeCluster()
    cluster.create(OWNERSHIP_TOPIC, 1)
    snapshot = attrs.evolve(SimulatedCluster().snapshot, ownership=None, evidence=None)
    request = EvidenceRequest(topics=frozenset({"a"}), with_ownership=True)
    found = with_evidence(DeniedReader(cluster), snapshot, request).evidence
    assert found is not None
    [records] = found.unread
    assert (records.source, records.cause) == (EvidenceSource.OWNERSHIP_RECORDS, UnreadCause.NO_PERMISSION)
    assert unread_text([records]) == (
        "not readable: the ownership records (permission Read on topic headwater-ownership)"
    )


@pytest.mark.parametrize(
    ("settings", "replicas", "changed"),
    [
        ({}, 3, set()),
        (SAFE, 3, set()),
        ({**SAFE, "min.insync.replicas": "3"}, 3, set()),
        ({**SAFE, "min.insync.replicas": "1"}, 3, {"min.insync.replicas"}),
        ({**SAFE, "min.insync.replicas": "1"}, 2, set()),
        ({**SAFE, "cleanup.policy": "compact,delete"}, 3, {"cleanup.policy"}),
        ({**SAFE, "max.message.bytes": "1048588"}, 3, {"max.message.bytes"}),
        ({**SAFE, "compression.type": "producer"}, 3, {"compression.type"}),
    ],
)
def test_settings_that_do_not_protect_the_records_are_changed(
    settings: dict[str, str], replicas: int, changed: set[str]
) -> None:
    plan = with_topic(OwnershipTopic(settings, replicas), application())
    assert plan.ownership_settings.keys() == changed
    assert bool(problems(plan, ProblemCode.RECORDS_NOT_SAFE)) is bool(changed)
    assert plan.is_applicable


def test_only_compaction_is_required_of_a_topic_whose_settings_brokers_refuse() -> None:
    limits = PlanPolicy(stack=STACK, configures_records=False)
    for policy, changed in (("compact", set()), ("delete", {"cleanup.policy"})):
        topic = OwnershipTopic({"cleanup.policy": policy, "compression.type": "producer"}, 3)
        cluster = SimulatedCluster.set_up(application())
        snapshot = attrs.evolve(cluster.snapshot, ownership=(), ownership_topic=topic)
        found = plan([application()], snapshot, cluster.records, limits)
        assert found.ownership_settings.keys() == changed
        summaries = [each.summary for each in problems(found, ProblemCode.RECORDS_NOT_SAFE)]
        assert any("settings" in each for each in summaries) is bool(changed)


def test_an_own_record_that_is_gone_is_reported_and_written_again() -> None:
    plan = unsafe_records()
    summaries = [problem.summary for problem in problems(plan, ProblemCode.RECORDS_NOT_SAFE)]
    assert "The ownership record of orders is missing." in summaries
    assert plan.is_applicable
    assert plan.ownership is not None
    assert [record.key for record in change_before(plan, plan.ownership).written] == [OWN]


@pytest.mark.parametrize("is_new", [True, False])
def test_an_application_without_records_before_its_first_setup_is_not_reported(is_new: object) -> None:
    plan = with_topic(OwnershipTopic(SAFE, 3), application(), is_new=bool(is_new))
    assert not problems(plan, ProblemCode.RECORDS_NOT_SAFE)
