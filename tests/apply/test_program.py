"""The program with Pulumi's mocks and an in-memory cluster."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pulumi
import pytest
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.stack import run_in_stack
from pulumi.runtime.sync_await import _sync_await

from headwater.kafka import Connection, SnapshotRequest
from headwater.model.cluster import ClusterSnapshot
from headwater.model.problems import Problem
from headwater.model.records import OwnershipChange, OwnershipRecord, StackIdentity
from headwater.planner import Plan
from headwater.pulumi import deploy, stack_settings
from headwater.pulumi.registration import Repair
from tests.contract.fake_cluster import FakeCluster, FakeClusterReader

DOCUMENT = """
application:
  id: shop
  config: {internal.topics.setup: manual, partition.autoscaling.enabled: true}
  setup: {allowUnsafeExpansion: true}
topology:
  - stream: {topic: orders}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
"""
TOPICS = ("shop-by-customer-repartition", "shop-counts-changelog")


class Mocks(pulumi.runtime.Mocks):
    """Creates topics in the in-memory cluster and returns the state of an earlier run."""

    def __init__(self, cluster: FakeCluster, state: Mapping[str, Any], read_topics: list[str]) -> None:
        self._cluster = cluster
        self._state = state
        self._read_topics = read_topics

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ == "kafka:index/topic:Topic" and not pulumi.runtime.is_dry_run() and not args.resource_id:
            self._cluster.create(args.name, int(args.inputs["partitions"]), args.inputs["config"])
        return args.name, args.inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        if args.token == "kafka:index:getTopic":
            self._read_topics.append(args.args["name"])
            return {}, []
        assert args.token == "pulumi:pulumi:readStackResourceOutputs"
        return {"outputs": self._state}, []


class Monitor(MockMonitor):
    """Records the registrations in order."""

    def __init__(self, mocks: Mocks) -> None:
        super().__init__(mocks)
        self.requests: list[Any] = []
        self.outputs: dict[str, Any] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: ANN401, N802 - the protocol's
        self.requests.append(request)
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: ANN401, N802 - same
        self.outputs[request.urn.rpartition("::")[0].rpartition("$")[2].rpartition("::")[2]] = dict(
            pulumi.runtime.rpc.deserialize_properties(request.outputs)
        )
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


class Writer:
    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.repairs: list[Repair] = []
        self.asked_for_permissions: list[bool] = []
        self.write_ownership = cluster.write_ownership
        self.configured: list[Mapping[str, str]] = []

    def find_refusals(self, _: Plan, *, with_permissions: bool) -> Sequence[Problem]:
        self.asked_for_permissions.append(with_permissions)
        return ()

    def controller_problem(self, _: str) -> Problem | None:
        return None

    def configure_ownership(self, settings: Mapping[str, str]) -> Sequence[Problem]:
        self.configured.append(settings)
        return ()

    def repair(self, repairs: Sequence[Repair]) -> None:
        self.repairs += repairs

    def delete_topics(self, ids: Mapping[str, str]) -> None:
        for name, id_ in ids.items():
            assert self._cluster.topics[name].topic_id == id_
            self._cluster.delete(name)


@attrs.frozen
class Run:
    monitor: Monitor
    error: str | None
    log: Sequence[tuple[int, str]]

    @property
    def topics(self) -> list[Any]:
        return [request for request in self.monitor.requests if request.type == "kafka:index/topic:Topic"]


@attrs.frozen
class Stack:
    """Runs the program repeatedly on one cluster."""

    folder: Path
    cluster: FakeCluster
    caplog: pytest.LogCaptureFixture
    state: dict[str, Any] = attrs.field(factory=dict)
    expanded_topics: Mapping[str, int] = attrs.field(factory=dict)
    read_topics: list[str] = attrs.field(factory=list)
    """Topics that the provider has read."""

    def run(self, *, preview: bool = False, **values: str) -> Run:
        mocks = Mocks(self.cluster, self.state, self.read_topics)
        monitor = Monitor(mocks)
        pulumi.runtime.settings.ROOT.set(None)
        logger = logging.getLogger("pulumi-mocks")
        self.caplog.clear()
        pulumi.runtime.set_mocks(mocks, preview=preview, logger=logger, monitor=monitor)
        pulumi.runtime.settings.ROOT.set(None)
        error = None
        settings = stack_settings(
            {"bootstrapServers": "b:9092", "documents": str(self.folder), **values}, environment={}
        )

        async def main() -> None:
            await deploy(settings, reader_for=self.reader, writer_for=lambda _: Writer(self.cluster))

        with self.caplog.at_level(logging.INFO, "pulumi-mocks"):
            try:
                _sync_await(run_in_stack(lambda: pulumi.run(main)))
            except pulumi.RunError as raised:
                error = str(raised)
        return Run(monitor, error, [(record.levelno, record.getMessage()) for record in self.caplog.records])

    def reader(self, _: Connection) -> FakeClusterReader:
        return ExpandingReader(self.cluster, self.expanded_topics)


@pytest.fixture
def stack(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Stack:
    (tmp_path / "shop.yaml").write_text(DOCUMENT)
    cluster = FakeCluster()
    cluster.create("orders", 4)
    return Stack(tmp_path, cluster, caplog)


def test_first_run_registers_guarded_topics_below_the_component(stack: Stack) -> None:
    run = stack.run()
    assert run.error is None
    assert [topic.name for topic in run.topics] == list(TOPICS)
    for topic in run.topics:
        assert topic.protect
        assert topic.retainOnDelete
        [hook] = topic.hooks.before_delete
        assert hook.startswith("headwater:keep-topics (to destroy the stack, set `lifecycle: released`")
        assert topic.importId == ""
        assert topic.provider.endswith("pulumi:providers:kafka::kafka::kafka")
        assert topic.parent.endswith("headwater:kafka:InternalTopics::shop")
        assert dict(topic.object)["partitions"] == 4


def test_components_are_protected_until_the_application_ends(stack: Stack) -> None:
    def protection(run: Run) -> dict[str, bool]:
        components = (r for r in run.monitor.requests if r.type.startswith("headwater:kafka:"))
        return {request.type.rpartition(":")[2]: request.protect for request in components}

    run = stack.run()
    assert protection(run) == {"InternalTopics": True, "Setup": True}
    stack.state.update(state_after(run))
    assert protection(stack.run()) == {"InternalTopics": True, "Setup": True}
    document = stack.folder / "shop.yaml"
    document.write_text(DOCUMENT.replace("  id: shop\n", "  id: shop\n  lifecycle: released\n"))
    assert protection(stack.run()) == {"InternalTopics": False, "Setup": False}


def test_setup_is_recorded_with_topic_ids(stack: Stack) -> None:
    outputs = stack.run().monitor.outputs["headwater:kafka:InternalTopics"]
    assert outputs["topics"] == {
        name: {"id": stack.cluster.topics[name].topic_id, "partitions": 4, "sink": False} for name in TOPICS
    }
    assert outputs["initialProcessors"] == 4


def test_a_preview_shows_changed_settings_of_a_document(stack: Stack) -> None:
    def changed(run: Run) -> object:
        [setup] = (each for each in run.monitor.requests if each.type == "headwater:kafka:Setup")
        return dict(dict(setup.object).get("changed") or {})

    _without_switches(stack)
    first = stack.run()
    assert changed(first) == {}
    stack.state.update(state_after(first))
    document = stack.folder / "shop.yaml"
    changed_config = "internal.topics.setup: automatic, sasl.jaas.config: hidden"
    document.write_text(document.read_text().replace("internal.topics.setup: manual", changed_config))
    expected = {"internal.topics.setup": "manual → automatic"}
    preview = stack.run(preview=True)
    assert changed(preview) == expected
    [(_, text)] = preview.log
    assert "1 application setting to record" in text
    assert "setting      internal.topics.setup: manual → automatic" in text
    second = stack.run()
    assert changed(second) == expected
    assert "hidden" not in str(second.monitor.outputs)
    finished = state_after(second)
    stack.state.update({urn: each for urn, each in finished.items() if each["type"].endswith(":Setup")})
    # The second run failed before it recorded the setting: the resource still has a difference.
    repeated = stack.run(preview=True)
    assert changed(repeated) == {"internal.topics.setup": "manual → automatic (again)"}
    assert "internal.topics.setup: manual → automatic\n" in repeated.log[0][1] + "\n"
    stack.state.update(finished)
    third = stack.run()
    assert (changed(third), third.log) == (expected, [])


def test_preview_reads_no_topic_ids(stack: Stack) -> None:
    outputs = stack.run(preview=True).monitor.outputs["headwater:kafka:InternalTopics"]
    assert {topic["id"] for topic in outputs["topics"].values()} == {""}
    assert not stack.cluster.topics.keys() & set(TOPICS)


def test_error_stops_the_program_before_the_first_registration(stack: Stack) -> None:
    stack.cluster.delete("orders")
    run = stack.run(clusterId="another", maxNewTopic="1")
    assert run.error == "nothing was changed: 3 problems, listed above"
    assert {request.type for request in run.monitor.requests} == {"pulumi:pulumi:Stack"}
    logged = [message for level, message in run.log if level == logging.ERROR]
    assert [message.split("]")[0] for message in logged] == [
        "error[InvalidConfig",
        "error[WrongCluster",
        "error[MissingSourceTopic",
    ]


def test_a_topic_of_two_registrations_stops_the_program_before_the_first(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi's engine would refuse the second registration when internal topics are already created."""
    monkeypatch.setattr("headwater.planner.decide.twice_managed", lambda _: ())
    for id_ in ("shop", "sales"):
        text = DOCUMENT.replace("  id: shop", f"  id: {id_}") + "topics:\n  totals: {partitions: 4}\n"
        (stack.folder / f"{id_}.yaml").write_text(text)
    run = stack.run()
    assert run.error == "nothing was changed: 1 problem, listed above"
    assert {request.type for request in run.monitor.requests} == {"pulumi:pulumi:Stack"}
    [message] = [message for level, message in run.log if level == logging.ERROR]
    assert "Topic totals would be registered 2 times" in message


def test_existing_topics_are_imported(stack: Stack) -> None:
    own = {"message.timestamp.type": "CreateTime"}
    stack.cluster.create(TOPICS[0], 2, {"cleanup.policy": "delete", "retention.ms": "-1", **own})
    stack.cluster.create(TOPICS[1], 2, {"cleanup.policy": "compact", **own})
    run = stack.run(setup='{"shop": {"adopt": true}}')
    assert run.error is None
    assert [topic.importId for topic in run.topics] == [TOPICS[1], TOPICS[0]]
    assert [list(topic.ignoreChanges) for topic in run.topics] == [["replicationFactor"]] * 2


def test_topics_are_expanded_wave_by_wave(stack: Stack) -> None:
    first = stack.run()
    stack.state.update(state_after(first))
    topics = stack.cluster.topics
    topics["orders"] = attrs.evolve(topics["orders"], partitions=6)
    run = stack.run()
    assert run.error is None
    assert [topic.name for topic in run.topics] == [TOPICS[1], TOPICS[0]]
    assert {int(dict(topic.object)["partitions"]) for topic in run.topics} == {6}


@attrs.frozen
class ExpandingReader(FakeClusterReader):
    """Expands topics after the plan has read the cluster, as another client would."""

    expanded_topics: Mapping[str, int]

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        snapshot = super().read(request)
        for name, partitions in self.expanded_topics.items():
            self.cluster.topics[name] = attrs.evolve(self.cluster.topics[name], partitions=partitions)
        return snapshot


def test_topic_expanded_by_another_client_is_unchanged(stack: Stack) -> None:
    stack.state.update(state_after(stack.run()))
    topics = stack.cluster.topics
    topics["orders"] = attrs.evolve(topics["orders"], partitions=6)
    expanding = attrs.evolve(stack, expanded_topics={TOPICS[1]: 6, TOPICS[0]: 5})
    preview = expanding.run(preview=True)
    assert [list(topic.ignoreChanges) for topic in preview.topics] == [["replicationFactor"]] * 2
    topics.update({name: attrs.evolve(topics[name], partitions=4) for name in TOPICS})
    run = expanding.run()
    assert run.error is None
    assert {topic.name: list(topic.ignoreChanges) for topic in run.topics} == {
        TOPICS[1]: ["partitions", "replicationFactor", "config"],
        TOPICS[0]: ["replicationFactor"],
    }


def test_resource_that_the_provider_must_read_is_registered_first(stack: Stack) -> None:
    """The first registration makes the provider connect, and runs alone."""
    stack.state.update(state_after(stack.run()))
    stack.cluster.delete(TOPICS[1])
    del stack.state[next(urn for urn in stack.state if urn.endswith(TOPICS[1]))]
    run = stack.run(setup='{"shop": {"reinitialize": true}}')
    assert run.error is None
    assert [topic.name for topic in run.topics] == [TOPICS[1], TOPICS[0]]


def test_the_provider_connects_before_topics_are_deleted(stack: Stack) -> None:
    stack.state.update(state_after(stack.run()))
    document = stack.folder / "shop.yaml"
    document.write_text(DOCUMENT.replace("  id: shop\n", "  id: shop\n  lifecycle: retired\n"))
    stack.state.update(state_after(stack.run()))
    document.unlink()
    assert stack.run(preview=True).error is None
    assert stack.read_topics == []
    assert stack.run().error is None
    [read_topics] = stack.read_topics
    assert read_topics in TOPICS


def test_retired_topics_are_deleted_by_their_ids(stack: Stack) -> None:
    stack.state.update(state_after(stack.run()))
    document = stack.folder / "shop.yaml"
    document.write_text(DOCUMENT.replace("  id: shop\n", "  id: shop\n  lifecycle: retired\n"))
    retiring = stack.run()
    assert all(topic.retainOnDelete and not topic.protect for topic in retiring.topics)
    stack.state.update(state_after(retiring))
    document.unlink()
    assert stack.run(preview=True).error is None
    assert set(TOPICS) <= stack.cluster.topics.keys()
    assert stack.run().error is None
    assert not set(TOPICS) & stack.cluster.topics.keys()


def test_nothing_is_deleted_if_a_client_reads_a_topic_since_the_plan(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.state.update(state_after(stack.run()))
    document = stack.folder / "shop.yaml"
    document.write_text(DOCUMENT.replace("  id: shop\n", "  id: shop\n  lifecycle: retired\n"))
    stack.state.update(state_after(stack.run()))
    document.unlink()
    claim = FakeCluster.write_ownership

    def claim_late(cluster: FakeCluster, change: OwnershipChange) -> None:
        claim(cluster, change)
        cluster.commit("audit", TOPICS[0], {0: ""})

    monkeypatch.setattr(FakeCluster, "write_ownership", claim_late)
    error = stack.run().error
    assert error is not None
    assert f"{TOPICS[0]}: it is read by group audit (Empty)" in error
    assert set(TOPICS) <= stack.cluster.topics.keys()


def _without_switches(stack: Stack) -> None:
    document = stack.folder / "shop.yaml"
    document.write_text(document.read_text().replace("  setup: {allowUnsafeExpansion: true}\n", ""))


def test_plan_is_logged_as_text(stack: Stack) -> None:
    _without_switches(stack)
    run = stack.run()
    [(level, text)] = run.log
    assert level == logging.INFO
    assert text.startswith("Plan for 1 application: 2 to create")
    stack.state.update(state_after(run))
    assert stack.run().log == []


def test_topics_of_an_interrupted_run_are_named_with_the_command_that_clears_pending_operations(
    stack: Stack,
) -> None:
    _without_switches(stack)
    finished = state_after(stack.run())
    stack.state.update({urn: resource for urn, resource in finished.items() if urn.endswith("Setup::shop")})
    run = stack.run()
    assert run.error is None
    [text] = [text for _, text in run.log if "interrupted" in text]
    assert all(name in text for name in TOPICS)
    assert text.endswith(f"pulumi refresh --clear-pending-creates --stack {pulumi.get_stack()}")
    stack.state.update(finished)
    assert stack.run().log == []


def test_what_leaves_the_state_and_stays_is_named(stack: Stack) -> None:
    """Pulumi shows that released topics are deleted."""
    _without_switches(stack)
    document = stack.folder / "shop.yaml"
    declared = document.read_text()
    stack.state.update(state_after(stack.run()))
    document.write_text(declared.replace("  id: shop\n", "  id: shop\n  lifecycle: released\n"))
    released = stack.run()
    assert not [text for _, text in released.log if "Removed from the state" in text]
    stack.state.update(state_after(released))
    for lifecycle in ("released", "retired"):
        document.write_text(declared.replace("  id: shop\n", f"  id: shop\n  lifecycle: {lifecycle}\n"))
        run = stack.run(preview=True)
        [text] = [text for _, text in run.log if "Removed from the state" in text]
        assert text.splitlines()[0] == f"Removed from the state of the stack: {', '.join(sorted(TOPICS))}"
        warnings = [text for level, text in run.log if level == logging.WARNING]
        assert ["this stack does not manage it" in each for each in warnings] == (
            [True] if lifecycle == "retired" else []
        )


def state_after(run: Run) -> dict[str, Any]:
    """Return what `readStackResourceOutputs` would return after `run`."""
    return {
        registered.urn: {
            "type": registered.urn.split("::")[2].rpartition("$")[2],
            "outputs": run.monitor.outputs.get(registered.urn.split("::")[2].rpartition("$")[2])
            or registered.state,
        }
        for registered in run.monitor.resources.values()
    }


OTHER = StackIdentity("other", "organization/headwater/other")


def claimed_by_another_stack() -> OwnershipChange:
    return OwnershipChange((OwnershipRecord(application_id="shop", stack=OTHER),))


def test_an_application_is_claimed_before_its_topics_are_created(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[tuple[bool, bool]] = []
    write = FakeCluster.write_ownership

    def recording(cluster: FakeCluster, change: OwnershipChange) -> None:
        (record,) = change.written
        claims.append((record.is_finished, cluster.topics.keys() >= set(TOPICS)))
        write(cluster, change)

    monkeypatch.setattr(FakeCluster, "write_ownership", recording)
    run = stack.run()
    assert run.error is None
    assert claims == [(False, False), (True, True)]
    (record,) = stack.cluster.ownership.values()
    assert record.topics == {name: stack.cluster.topics[name].topic_id for name in TOPICS}
    stack.state.update(state_after(run))
    assert stack.run().error is None
    assert len(claims) == 2, "nothing changed, so nothing is written"


def test_a_preview_claims_nothing(stack: Stack) -> None:
    assert stack.run(preview=True).error is None
    assert not stack.cluster.ownership


@pytest.mark.parametrize("preview", [True, False])
def test_an_application_of_another_stack_is_refused(stack: Stack, *, preview: bool) -> None:
    stack.cluster.write_ownership(claimed_by_another_stack())
    run = stack.run(preview=preview)
    assert run.error == "nothing was changed: 1 problem, listed above"
    assert "ManagedByAnotherStack" in run.log[0][1]
    assert not run.topics
    assert len(stack.cluster.ownership) == 1


def test_a_run_without_ownership_records_continues(stack: Stack) -> None:
    stack.cluster.write_ownership(claimed_by_another_stack())
    assert stack.run(ownership="none").error is None
    assert len(stack.cluster.ownership) == 1


def test_of_two_stacks_that_claim_at_the_same_time_one_withdraws(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FakeCluster.write_ownership

    def overtaken(cluster: FakeCluster, change: OwnershipChange) -> None:
        write(cluster, change)
        write(cluster, claimed_by_another_stack())

    monkeypatch.setattr(FakeCluster, "write_ownership", overtaken)
    run = stack.run()
    assert run.error == "nothing was changed: 1 problem, listed above"
    assert not run.topics
    assert [record.stack for record in stack.cluster.ownership.values()] == [OTHER]
