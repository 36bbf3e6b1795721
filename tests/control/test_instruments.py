"""Metrics with their KIP names, a status that conforms to its schema, and one log line for each event."""

import json
from pathlib import Path

import attrs
import pytest
from jsonschema import Draft202012Validator
from prometheus_client import CollectorRegistry, generate_latest

from headwater.agent import events
from headwater.agent.events import _MESSAGES, AgentEvent, ApplicationEvent, log_line
from headwater.agent.instruments import AgentInstruments
from headwater.agent.state import AgentState, ApplicationState, Outcome, TopicResult
from headwater.control import Health, Surface
from headwater.model.problems import Problem, ProblemCode, Severity
from tests.control.states import EXPANDING, FOLLOWING, LEADING, OVER_PARTITIONED, UNREACHABLE, UNREADABLE

_SCHEMAS = Path(__file__).parents[2] / "topology_schemas"
_SCHEMA = json.loads((_SCHEMAS / "agent-status.v1.schema.json").read_text(encoding="utf-8"))
_EXPANDED = TopicResult("a", 6, Outcome.EXPANDED)
_FAILED = TopicResult("b", 6, Outcome.FAILED, "POLICY_VIOLATION", "no more than 5")


def _instruments(state: AgentState) -> tuple[AgentInstruments, CollectorRegistry]:
    registry = CollectorRegistry()
    instruments = AgentInstruments(registry, "agent-1")
    instruments.record_state(state)
    return instruments, registry


def _samples(registry: CollectorRegistry, name: str) -> list[str]:
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if line.startswith(name)]


def test_parallelism_has_its_kip_name_and_tags() -> None:
    _, registry = _instruments(LEADING)
    name = "current_subtopology_parallelism"
    assert _samples(registry, name) == [
        name + '{application_id="totals-app",client_id="agent-1",subtopology_id="0"} 6.0',
        name + '{application_id="payments-app",client_id="agent-1",subtopology_id="0"} 3.0',
        name + '{application_id="orders-app",client_id="agent-1",subtopology_id="0"} 6.0',
        name + '{application_id="orders-app",client_id="agent-1",subtopology_id="1"} 3.0',
    ]


def test_autoscaling_metrics_exist_only_with_autoscaling_on() -> None:
    _, registry = _instruments(LEADING)
    expected = _samples(registry, "expected_subtopology_parallelism")
    assert len(expected) == 3
    assert not [line for line in expected if "payments-app" in line]  # its flag is off
    assert _samples(registry, "num_autoscaling_failures_total") == [
        'num_autoscaling_failures_total{client_id="agent-1"} 2.0'
    ]
    off = attrs.evolve(LEADING, applications={"payments-app": LEADING.applications["payments-app"]})
    _, registry = _instruments(off)
    assert len(_samples(registry, "current_subtopology_parallelism")) == 1
    assert not _samples(registry, "expected_subtopology_parallelism")
    assert not _samples(registry, "num_autoscaling_failures_total")


def test_attempts_and_requests_are_counted() -> None:
    instruments, registry = _instruments(LEADING)
    instruments.record_event(events.AttemptEnded("orders-app", 4, (_EXPANDED, _EXPANDED, _FAILED)))
    instruments.record_event(events.AttemptFailed("orders-app", 4, ("b: no",), 1_000, 500))
    instruments.record_event(events.Expanded("orders-app", 4, 700))
    instruments.record_request("metadata", 0.02, succeeded=True)
    instruments.record_request("expand", 4.0, succeeded=False)
    value = registry.get_sample_value
    orders = {"application_id": "orders-app"}
    assert value("headwater_agent_expanded_topics_total", orders) == 2
    assert value("headwater_agent_retries_total", orders) == 1
    assert value("headwater_agent_convergence_seconds_sum", orders) == 0.7
    assert value("headwater_agent_convergence_seconds_bucket", {**orders, "le": "0.5"}) == 0
    assert value("headwater_agent_admin_request_seconds_count", {"operation": "metadata"}) == 1
    assert value("headwater_agent_admin_request_failures_total", {"operation": "expand"}) == 1
    assert value("headwater_agent_admin_request_failures_total", {"operation": "metadata"}) is None


def test_phases_and_leadership_are_metrics() -> None:
    _, registry = _instruments(LEADING)
    value = registry.get_sample_value
    assert value("headwater_agent_leader") == 1
    assert value("headwater_agent_cluster_readable") == 1
    phase = {"application_id": "payments-app", "phase": "refused"}
    assert value("headwater_agent_application_phase", phase) == 1
    assert value("headwater_agent_application_phase", {**phase, "phase": "steady"}) == 0
    assert value("headwater_agent_missing_partitions", {"application_id": "orders-app"}) == 6
    _, registry = _instruments(UNREADABLE)
    assert registry.get_sample_value("headwater_agent_leader") == 0
    assert registry.get_sample_value("headwater_agent_cluster_readable") == 0


def test_an_application_without_an_internal_topic_is_incomplete() -> None:
    lost = Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary="Internal topic app-counts-changelog does not exist.",
        topic="app-counts-changelog",
        expected="4 partitions",
        found="none",
        severity=Severity.WARNING,
    )
    state = AgentState(applications={"app": ApplicationState(id="app", problems=(lost,))})
    instruments, registry = _instruments(state)
    for phase, value in (("incomplete", 1), ("steady", 0)):
        labels = {"application_id": "app", "phase": phase}
        assert registry.get_sample_value("headwater_agent_application_phase", labels) == value
    assert (
        registry.get_sample_value("headwater_agent_missing_internal_topics", {"application_id": "app"}) == 1
    )
    [shown] = instruments.section().status()["applications"]
    assert shown["phase"] == "incomplete"
    assert "incomplete" in _SCHEMA["$defs"]["application"]["properties"]["phase"]["enum"]


@pytest.mark.parametrize("state", [AgentState(), LEADING, FOLLOWING, UNREADABLE], ids=["new", "a", "b", "c"])
def test_status_conforms_to_schema(state: AgentState) -> None:
    surface = Surface.create("agent-1", host="host-1", headwater="0.1.0")
    instruments = AgentInstruments(
        surface.registry, "agent-1", election_error=lambda: "GROUP_AUTHORIZATION_FAILED"
    )
    instruments.record_state(state)
    status = json.loads(json.dumps(surface.with_section(instruments.section()).status()))
    Draft202012Validator.check_schema(_SCHEMA)
    Draft202012Validator(_SCHEMA).validate(status)
    assert status["agent"]["electionTrouble"] == "GROUP_AUTHORIZATION_FAILED"
    known = _SCHEMA["$defs"]["agent"]["properties"]
    assert set(status["agent"]) == set(known)
    for application in status["agent"]["applications"]:
        assert set(application) == set(_SCHEMA["$defs"]["application"]["properties"])


def test_status_shows_missing_partitions_and_duration() -> None:
    instruments, _ = _instruments(LEADING)
    status = instruments.section().status()
    [orders, payments, _totals] = status["applications"]
    assert orders["missing"][0] == {"topic": "orders-app-counts-changelog", "partitions": 3, "wanted": 6}
    assert orders["expansion"] == {
        "number": 4,
        "attempts": 2,
        "runningForMs": 4_500,
        "failingForMs": 2_500,
        "done": ["orders-app-x-changelog"],
    }
    assert payments["problems"][0]["fix"] == OVER_PARTITIONED.fix


def test_agent_is_ready_after_reading_cluster() -> None:
    def ready(state: AgentState) -> Health:
        return _instruments(state)[0].section().ready()

    assert ready(LEADING) == ready(FOLLOWING) == Health()
    assert ready(AgentState()) == Health(ok=False, reason="The cluster has not been read yet.")
    assert ready(UNREADABLE) == Health(ok=False, reason=UNREACHABLE.summary)


def test_agent_with_hanging_loop_is_not_live(monkeypatch: pytest.MonkeyPatch) -> None:
    instruments, _ = _instruments(LEADING)
    live = instruments.section().live
    assert live().ok
    monkeypatch.setattr("headwater.agent.instruments._LONGEST_ITERATION_SECONDS", -1.0)
    assert live().reason.startswith("The loop has not iterated for ")


def test_every_event_has_log_message() -> None:
    kinds = [
        each for each in vars(events).values() if isinstance(each, type) and issubclass(each, AgentEvent)
    ]
    assert set(_MESSAGES) == set(kinds) - {AgentEvent, ApplicationEvent}


def test_log_lines_contain_topics_and_reasons() -> None:
    line = log_line(events.AttemptEnded("orders-app", 4, (_EXPANDED, _FAILED)))
    assert line.fields["results"] == [
        "a: expanded, 6 partitions",
        "b: failed, 6 partitions (POLICY_VIOLATION: no more than 5)",
    ]
    line = log_line(events.ExpansionStarted("orders-app", 4, EXPANDING.shortfalls))
    assert line.fields["shortfalls"][0] == "orders-app-counts-changelog: 3 of 6"
    line = log_line(events.ApplicationStopped("payments-app", (OVER_PARTITIONED,)))
    assert (line.level, line.message) == ("error", "INCOMPLETE_SOURCE_TOPIC_METADATA: autoscaling is off")
    [text] = line.fields["problems"]
    assert text.startswith("OverPartitionedInternalTopic [payments-app-totals-changelog]: ")
    assert text.endswith(f"{OVER_PARTITIONED.summary} {OVER_PARTITIONED.fix}")
    others = [attrs.evolve(OVER_PARTITIONED, topic=name, summary=f"{name} is too large.") for name in "ab"]
    line = log_line(events.ApplicationStopped("payments-app", (OVER_PARTITIONED, *others)))
    assert line.fields["problems"] == [
        f"OverPartitionedInternalTopic [payments-app-totals-changelog]: {OVER_PARTITIONED.summary}",
        "OverPartitionedInternalTopic [a]: a is too large.",
        "OverPartitionedInternalTopic [b]: b is too large.",
        f"OverPartitionedInternalTopic: {OVER_PARTITIONED.fix}",
    ]
    assert log_line(events.Notified("a", 1, 3, 6)).level == "info"
    assert log_line(events.Notified("a", 1, 3, 6, "ValueError: x")).level == "error"


def test_label_values_are_escaped() -> None:
    odd = 'a"b\\c\nd'
    _, registry = _instruments(AgentState(applications={odd: ApplicationState(id=odd)}))
    assert any('a\\"b\\\\c\\nd' in line for line in _samples(registry, "headwater_agent_application_phase"))
