"""A plan says what other clients do: which has expanded a topic, and what the running application reads."""

import attrs
import pytest

from headwater.model.cluster import LiveGroup
from headwater.model.expansions import AgentExpansion, AgentExpansions
from headwater.planner import ActionKind, plan
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    CHANGELOG,
    NO_LIMITS,
    REPARTITION,
    SimulatedCluster,
    application,
)

LIBRARY = {**AUTOSCALING, "default.client.supplier": "io.headwater.streams.HeadwaterClientSupplier"}
JOURNAL = "headwater-agent-default"
OTHERS = "an interrupted run of the stack or another client"
TIME = "2026-11-26 05:00:00 UTC"


def expansion(topic: str, partitions: int, agent: str = "agent-1") -> AgentExpansion:
    return AgentExpansion(topic, partitions, agent, "host-1", TIME)


def notes_of(
    expansions: AgentExpansions | None, config: dict[str, str] = AUTOSCALING, grown: int = 8
) -> dict[str, str]:
    """Return topic → note of the plan after other clients have expanded all topics."""
    cluster = SimulatedCluster.set_up(application(config=config))
    for topic in (REPARTITION, CHANGELOG):
        cluster.change(topic, partitions=grown)
    compiled = application(config=config, sources={"orders-in": grown})
    snapshot = attrs.evolve(cluster.snapshot, expansions=expansions)
    planned = plan((compiled,), snapshot, cluster.records, NO_LIMITS)
    assert {action.kind for action in planned.actions} == {ActionKind.KEEP}
    return {action.name: action.note for action in planned.actions}


def test_the_plan_names_the_agent_of_the_journal() -> None:
    found = (expansion(REPARTITION, 8), expansion(CHANGELOG, 8), expansion(CHANGELOG, 8, "agent-2"))
    before = "4 partitions at the last complete run of the stack, expanded by agent"
    assert notes_of(AgentExpansions(found)) == {
        REPARTITION: f"{before} agent-1 on host-1 at {TIME}",
        CHANGELOG: f"{before} agent-2 on host-1 at {TIME}",
    }


@pytest.mark.parametrize(
    ("config", "by"),
    [
        (AUTOSCALING, OTHERS),
        (LIBRARY, f"its client supplier, {OTHERS}"),
        ({key: value for key, value in LIBRARY.items() if key != "partition.autoscaling.enabled"}, OTHERS),
    ],
)
def test_without_an_agent_the_client_supplier_is_named_only_if_it_expands(
    config: dict[str, str], by: str
) -> None:
    """The journal has an expansion to fewer partitions: another client expanded the topic after that."""
    found = (expansion(REPARTITION, 6), expansion(CHANGELOG, 6))
    note = f"4 partitions at the last complete run of the stack, expanded by {by}"
    in_no_journal = f"{note}; it is in no journal of an agent that the user may read"
    assert set(notes_of(AgentExpansions(found, read=(JOURNAL,)), config).values()) == {in_no_journal}
    assert set(notes_of(AgentExpansions(), config).values()) == {note}, "no journal is visible"


def test_a_journal_that_is_not_readable_is_named() -> None:
    note = (
        "4 partitions at the last complete run of the stack, expanded by an interrupted run of the stack or "
        f"another client; journals of agents not readable: {JOURNAL}"
    )
    assert set(notes_of(AgentExpansions(unread=(JOURNAL,))).values()) == {note}


def test_nothing_is_said_without_an_expansion_or_without_reading() -> None:
    assert set(notes_of(AgentExpansions((expansion(CHANGELOG, 4),)), grown=4).values()) == {""}
    assert set(notes_of(None).values()) == {""}


def running(*topics: str, assignor: str = "stream") -> tuple[str, ...]:
    """Return the notes of a plan while the application runs and reads these topics."""
    cluster = SimulatedCluster.set_up(application())
    cluster.groups["orders"] = LiveGroup(
        "orders", "Stable", 1, assignor=assignor, subscribed=frozenset(topics)
    )
    (part,) = cluster.plan(application()).applications
    return part.notes


def test_a_running_application_with_another_topology_is_a_note() -> None:
    note = "the running application reads other topics than the document: "
    assert running("orders-in", REPARTITION) == ()
    assert running("orders-in") == (f"{note}not {REPARTITION}",)
    assert running("orders-in", REPARTITION, "x") == (f"{note}but x",)
    assert running("orders-in", "x") == (f"{note}not {REPARTITION}, but x",)
    assert running("orders-in", "x", assignor="range") == ()
