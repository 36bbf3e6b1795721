"""An application with processors that the agent's document does not declare: its changelogs stay as they are.

Its tasks commit the number with their offsets. Without such a commit, nothing on the cluster shows it.
"""

import pytest

from headwater.agent.decide.values import ReadOffsetMetadata
from headwater.agent.events import ApplicationRefused, ProblemsSolved
from headwater.agent.state import Phase
from headwater.model.problems import ProblemCode
from tests.agent.simulation import CHANGELOG, ORDERS, REPARTITION, Simulation, documents, leading_agent

_STATIC = ', static.partitioner.class: "tenants:ByTenant"'
_UNSAFE = ORDERS.replace(_STATIC, "").replace(
    "application:", "application:\n  setup: {allowUnsafeExpansion: true}"
)
_OFF = ORDERS.replace("enabled: true", "enabled: false")
_DECLARED = ORDERS.replace(_STATIC, ", processing.guarantee: exactly_once_v2").replace(
    "id: totals-app", "id: totals-app\n  processors: 4"
)


def _agent(
    text: str, *, declared: int | None = 4, count: int | None = None, changelog: int = 4
) -> Simulation:
    """Return an agent after the source topics were expanded to 8 partitions."""
    simulation = leading_agent(text)
    simulation.declared, simulation.processors = declared, count
    simulation.counts |= {"orders": 8, "returns": 8, CHANGELOG: changelog}
    simulation.pass_time(30_000)
    return simulation


@pytest.mark.parametrize("text", [ORDERS, _UNSAFE], ids=["static partitioner", "allowUnsafeExpansion"])
@pytest.mark.parametrize(
    ("declared", "count", "number"), [(4, None, 4), (2, 2, 2), (None, 2, 2)], ids=["all", "fewer", "earlier"]
)
def test_a_changelog_of_committed_processors_is_not_expanded(
    text: str, declared: int | None, count: int | None, number: int
) -> None:
    simulation = _agent(text, declared=declared, count=count)
    assert simulation.app().phase is Phase.REFUSED
    [problem] = simulation.app().problems
    assert problem.code is ProblemCode.PROCESSOR_COUNT
    assert problem.summary == f"The document does not declare the {number} processors of {CHANGELOG}."
    assert problem.fix.startswith(f"Declare `processors: {number}`, as the document of the application does.")
    assert "run `pulumi up`, which reads the record of the stack" in problem.fix
    simulation.crash()
    simulation.lead()
    simulation.pass_time(60_000)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (4, 4)
    assert not simulation.journal
    assert [type(event) for event in simulation.events].count(ApplicationRefused) == 2


def test_the_other_topics_are_expanded_when_the_document_declares_the_number() -> None:
    simulation = _agent(ORDERS)
    simulation.documents = documents(_DECLARED)
    simulation.pass_time(60_000)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (8, 4)
    assert simulation.app().phase is Phase.STEADY
    assert simulation.reported(ProblemsSolved)


def test_an_application_that_has_no_processors_any_more_is_expanded_by_a_run() -> None:
    """A commit of before shows a number. The run knows from the record of the stack that there is none."""
    simulation = _agent(ORDERS)
    simulation.counts |= {REPARTITION: 8, CHANGELOG: 8, "totals": 8}
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STEADY
    assert not simulation.app().problems
    assert simulation.state.undeclared == frozenset()


def test_without_a_committed_number_the_changelog_is_expanded() -> None:
    simulation = _agent(ORDERS, declared=None)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (8, 8)
    assert simulation.state.undeclared == frozenset()


def test_nothing_is_expanded_while_the_commits_cannot_be_read() -> None:
    simulation = leading_agent(_UNSAFE)
    simulation.declared, simulation.are_offsets_unreadable = 4, True
    simulation.counts |= {"orders": 8, "returns": 8}
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 4
    simulation.are_offsets_unreadable = False
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 4
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.PROCESSOR_COUNT]


def test_without_autoscaling_no_expansion_of_the_changelog_is_proposed() -> None:
    simulation = _agent(_OFF)
    codes = {problem.topic: problem.code for problem in simulation.app().problems}
    assert codes[CHANGELOG] is ProblemCode.PROCESSOR_COUNT


def test_a_changelog_that_has_enough_partitions_needs_no_read_of_the_inputs() -> None:
    """The number decides whether a changelog topic is expanded: without one to expand, it changes nothing."""
    simulation = _agent(ORDERS, changelog=8)
    reads = [action for action in simulation.actions if isinstance(action, ReadOffsetMetadata)]
    assert {name for read in reads for topics in read.topics.values() for name in topics} == {CHANGELOG}
    assert simulation.counts[REPARTITION] == 8


def test_a_declared_number_is_known_after_another_client_has_expanded_the_changelog() -> None:
    simulation = _agent(_DECLARED, changelog=8)
    assert not simulation.app().problems
    assert (simulation.state.processors, simulation.counts[REPARTITION]) == ({"totals-app": 4}, 8)
    simulation = _agent(_DECLARED, declared=None, changelog=8)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.PROCESSOR_COUNT]
