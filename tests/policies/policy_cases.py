"""Policies as texts, and an application that violates some of them."""

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import ChangelogKind
from headwater.model.policies import Policy
from headwater.model.topology import Sink
from headwater.planner import Plan, PlanPolicy
from headwater.spec.policies import load_policies_text
from tests.planner.simulated_cluster import SimulatedCluster, application, changelog, repartition

CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": "86400000", "min.insync.replicas": "2"}


def policies(text: str) -> tuple[Policy, ...]:
    loaded = load_policies_text(f"policies:\n  - {text}\n", "policies.yaml")
    assert loaded.problems == ()
    return loaded.policies


def shop() -> CompiledApplication:
    """Return orders(4) → by-customer → counts and hourly, with a generated store and a managed sink."""
    topics = (
        attrs.evolve(repartition("orders-by-customer-repartition", 4), node="by-customer-repartition-sink"),
        attrs.evolve(changelog("orders-counts-changelog", 4), node="counts"),
        attrs.evolve(changelog("orders-Hourly-changelog", 4, ChangelogKind.WINDOWED), node="Hourly"),
        attrs.evolve(
            changelog("orders-KSTREAM-REDUCE-STATE-STORE-0000000007-changelog", 4),
            node="KSTREAM-REDUCE-STATE-STORE-0000000007",
            generated=True,
        ),
    )
    compiled = application(topics=topics, sink=Sink("totals", 4, CONFIG, 3))
    *parts, last = compiled.subtopologies
    last = attrs.evolve(last, stores=("counts", "Lookups"))
    return attrs.evolve(compiled, subtopologies=(*parts, last))


def planned(text: str, cluster: SimulatedCluster | None = None) -> Plan:
    return (cluster or SimulatedCluster()).plan(shop(), policy=PlanPolicy(policies=policies(text)))
