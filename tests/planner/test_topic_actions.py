"""What a run does with each topic: create, expand, reconfigure, or show a difference."""

from collections.abc import Mapping

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode
from headwater.model.topology import Sink
from headwater.planner import ActionKind
from tests.planner.plans import codes, kinds
from tests.planner.simulated_cluster import (
    BOTH,
    MANUAL,
    REPARTITION,
    SimulatedCluster,
    application,
)


def test_other_config_differences_are_shown_when_set_up_manually() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.configure(REPARTITION, segment_bytes="1000000", min_insync_replicas="2")
    plan = cluster.plan(application(config=MANUAL))
    assert not plan.problems
    assert not plan.has_changes
    action = next(action for action in plan.actions if action.name == REPARTITION)
    assert [(change.key, change.live, change.declared) for change in action.drift] == [
        ("min.insync.replicas", "2", None),
        ("segment.bytes", "1000000", "52428800"),
    ]
    assert action.config == cluster.topics[REPARTITION].config


def test_other_declared_configs_are_reconfigured_when_set_up_automatically() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(REPARTITION, segment_bytes="1000000", min_insync_replicas="2")
    plan = cluster.up(application())
    action = next(action for action in plan.actions if action.name == REPARTITION)
    assert action.kind is ActionKind.RECONFIGURE
    assert [change.key for change in action.changes] == ["segment.bytes"]
    assert [change.key for change in action.drift] == ["min.insync.replicas"]
    assert cluster.topics[REPARTITION].config["min.insync.replicas"] == "2"
    assert cluster.topics[REPARTITION].config["segment.bytes"] == "52428800"


@BOTH
def test_a_managed_sink_is_created_expanded_and_never_shrunk(mode: Mapping[str, str]) -> None:
    def compiled(partitions: int, config: Mapping[str, str] | None = None) -> CompiledApplication:
        return application(config=mode, sink=Sink("orders-out", partitions, config or {}))

    cluster = SimulatedCluster.set_up(compiled(4, {"retention.ms": "1000"}))
    assert cluster.topics["orders-out"].config == {"retention.ms": "1000"}
    cluster.configure("orders-out", compression_type="zstd")
    plan = cluster.up(compiled(8, {"retention.ms": "1000"}))
    assert kinds(plan)["orders-out"] is ActionKind.EXPAND
    assert cluster.topics["orders-out"].config == {"retention.ms": "1000", "compression.type": "zstd"}
    assert codes(cluster.plan(compiled(6, {"retention.ms": "1000"}))) == [ProblemCode.OVER_PARTITIONED]
    del cluster.topics["orders-out"]
    assert kinds(cluster.up(compiled(8)))["orders-out"] is ActionKind.RECREATE
