"""The agent with exactly the permissions that `headwater acls` lists for it, or fewer."""

from collections.abc import Callable

import attrs
import pytest
import yaml

from headwater.agent.events import AttemptEnded
from headwater.agent.state import Outcome
from headwater.compiler import compile_document
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import TopologyDocument
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_text
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker.readiness import until
from tests.acls.conftest import HEADWATER
from tests.acls.secured_cluster import SecuredCluster
from tests.agent.running import Recorder, running, settings

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_SECONDS = 60
_PRINCIPAL = f"User:{HEADWATER.name}"


@attrs.frozen
class Expandable:
    """An application with state whose source topic can be expanded, and its topics."""

    id: str
    source: str
    documents: tuple[TopologyDocument, ...]

    @property
    def repartition(self) -> str:
        return f"{self.id}-by-item-repartition"

    @property
    def changelog(self) -> str:
        return f"{self.id}-levels-changelog"

    @property
    def internal(self) -> tuple[str, str]:
        return self.repartition, self.changelog

    @property
    def needs(self) -> frozenset[Permission]:
        compiled = compile_document(self.documents[0], {})
        return frozenset(need.permission for need in headwater_needs(Purpose.AGENT, [compiled]))

    def needs_without(self, missing: Permission) -> frozenset[Permission]:
        """Return the needs without one of them; each internal topic has permissions of its own."""
        prefix = f"{self.id}-"
        single = {
            Permission(need.kind, topic, need.operation)
            for need in self.needs
            if need.name == prefix
            for topic in self.internal
        }
        described = {Permission(ResourceKind.TOPIC, topic, Operation.DESCRIBE) for topic in self.internal}
        others = {need for need in self.needs if need.name != prefix}
        return frozenset((single | others) - {missing} | described)


@pytest.fixture
def expandable(secured_cluster: SecuredCluster, unique: Callable[[str], str]) -> Expandable:
    id_, source = unique("stock"), unique("movements")
    text = {
        "application": {
            "id": id_,
            "config": {"partition.autoscaling.enabled": True, "static.partitioner.class": "range"},
        },
        "topology": [
            {"stream": {"topic": source}},
            {"groupBy": {"key": "value.item", "name": "by-item"}},
            {"reduce": {"materialized": "levels"}},
        ],
    }
    found = Expandable(id_, source, load_text(yaml.safe_dump(text), "stock.yaml").documents)
    secured_cluster.create({source: 2, **dict.fromkeys(found.internal, 2)})
    return found


def test_the_agent_expands_topics_with_the_listed_permissions(
    secured_cluster: SecuredCluster, expandable: Expandable
) -> None:
    id_, cluster = expandable.id, secured_cluster
    cluster.set_acls(_PRINCIPAL, expandable.needs)
    log = cluster.log_length
    with running(settings("", expandable.documents, id_, connection=cluster.connection(HEADWATER))):
        assert until(lambda: f"headwater-agent-{id_}" in cluster.topics(), _SECONDS)
        cluster.expand(expandable.source, 4)
        assert until(lambda: {cluster.topics()[name] for name in expandable.internal} == {4}, _SECONDS)
    assert cluster.denials(log, id_, expandable.source) == set()


def _denied(agent: Recorder, id_: str) -> Problem | None:
    state = agent.state.applications.get(id_)
    found = () if state is None else (*state.problems, *state.attempt_problems)
    return next((problem for problem in found if problem.code is ProblemCode.NOT_AUTHORIZED), None)


@pytest.mark.parametrize("missing", ["Alter changelog", "Alter repartition", "Describe group"])
def test_a_missing_permission_is_named_and_its_command_lets_the_expansion_continue(
    secured_cluster: SecuredCluster,
    expandable: Expandable,
    kafka_distribution: KafkaDistribution,
    missing: str,
) -> None:
    """The changelog topic is expanded first: without it the others wait, and it keeps its new partitions."""
    cluster, id_, (operation, resource) = secured_cluster, expandable.id, missing.split()
    name = {"group": id_, "changelog": expandable.changelog, "repartition": expandable.repartition}[resource]
    kind = ResourceKind.GROUP if resource == "group" else ResourceKind.TOPIC
    cluster.set_acls(_PRINCIPAL, expandable.needs_without(Permission(kind, name, Operation(operation))))
    cluster.expand(expandable.source, 4)
    with running(settings("", expandable.documents, id_, connection=cluster.connection(HEADWATER))) as agent:
        assert until(lambda: _denied(agent, id_) is not None, _SECONDS)
        problem = _denied(agent, id_)
        assert problem is not None
        assert problem.expected == f"permission {operation} on {kind.lower()} {name}"
        counts = cluster.topics()
        assert counts[expandable.repartition] == 2
        assert counts[expandable.changelog] == (4 if resource == "repartition" else 2)
        tool = kafka_distribution if resource == "changelog" else None
        cluster.grant(problem.fix, _PRINCIPAL, tool)
        assert until(lambda: {cluster.topics()[topic] for topic in expandable.internal} == {4}, _SECONDS)
        assert until(lambda: _denied(agent, id_) is None, _SECONDS)
    ended = [event for event in agent.events if isinstance(event, AttemptEnded)]
    outcomes = [result for event in ended for result in event.results]
    expanded = [result.topic for result in outcomes if result.outcome is Outcome.EXPANDED]
    assert sorted(expanded) == sorted(expandable.internal)
