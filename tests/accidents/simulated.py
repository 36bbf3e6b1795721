"""The real program with the simulated engine and cluster: a run plans, decides and registers as `up`."""

import asyncio
import gc
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import attrs
import pulumi
from pulumi.runtime.proto.source_pb2 import StackTrace
from pulumi.runtime.settings import ROOT, SETTINGS
from pulumi.runtime.stack import run_in_stack
from pulumi.runtime.sync_await import _ensure_event_loop, _sync_await

from headwater.kafka import Connection
from headwater.model.policies import BlastRadius, Effect, Policy
from headwater.model.problems import Location, Problem, Severity, errors
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipChange
from headwater.planner import Plan, PlanPolicy
from headwater.pulumi import deploy
from headwater.pulumi.cluster_writer import kafka_provider
from headwater.pulumi.planning import Planned, plan_stack
from headwater.pulumi.registration import Repair
from headwater.pulumi.settings import StackSettings
from tests.accidents.cluster import AccidentCluster
from tests.accidents.documents import Declared, loaded
from tests.accidents.engine import Clock, KilledError, NoMocks, SimulatedEngine, State

_LOGGER = logging.getLogger("accidents")
_LOGGER.disabled = True
_CONNECTION = Connection(bootstrap_servers=("broker:9092",))
_IDS = count(1)
_CAREFUL = PlanPolicy(
    policies=(
        Policy(
            rule=BlastRadius({Effect("removingSettings"): 0}),
            key="blastRadius",
            at=Location("policies.yaml", 1),
        ),
    )
)


@attrs.frozen(kw_only=True)
class Run:
    """What a run did: the plan it made (None: it could not), its errors, and whether it finished.

    `has_begun`: the plan had no error, so the run began to change the cluster. `users` are the groups of each
    topic when the run began to delete.
    """

    plan: Plan | None
    problems: tuple[Problem, ...]
    error: str | None
    is_killed: bool
    has_begun: bool
    users: Mapping[str, frozenset[str]]
    changes: int

    @property
    def is_finished(self) -> bool:
        return self.error is None and not self.is_killed

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the errors of the plan, sorted."""
        return tuple(sorted({problem.code.value for problem in errors(self.problems)}))

    def warned(self, *codes: str) -> frozenset[str]:
        """Return the topics about which the plan warns with one of these codes."""
        return frozenset(
            problem.topic
            for problem in self.problems
            if problem.topic and problem.code.value in codes and problem.severity is Severity.WARNING
        )


@attrs.define
class SimulatedStack:
    """A stack with its state. Documents are given to each run."""

    name: str
    cluster: AccidentCluster
    state: State = attrs.field(factory=dict)
    is_careful: bool = False
    """Whether a policy refuses settings that remove records."""

    def up(
        self,
        documents: Sequence[Declared],
        clock: Clock | None = None,
        approved: str | None = None,
        *,
        is_preview: bool = False,
    ) -> Run:
        """Run the program, and then what the engine does after it."""
        clock = clock or Clock()
        state = dict(self.state) if is_preview else self.state
        engine = SimulatedEngine(self.cluster, state, clock)
        writer = Writer(self.cluster, clock)
        settings = StackSettings(
            connection=_CONNECTION,
            documents=tuple(loaded(declared) for declared in documents),
            policy=_CAREFUL if self.is_careful else PlanPolicy(),
            approved_plan=approved,
        )
        found: list[Planned] = []
        begun: list[Connection] = []
        error = None
        with _patched(found, begun, clock):
            error = self._run(engine, writer, settings, is_preview=is_preview)
            if error is None and not is_preview:
                try:
                    error = engine.delete_others()
                except KilledError:
                    error = "killed"
        planned = found[0] if found else Planned(None, ())
        return Run(
            plan=planned.plan,
            problems=planned.problems,
            error=error,
            is_killed=clock.is_over,
            has_begun=bool(begun) and not is_preview,
            users=writer.users,
            changes=clock.ticks,
        )

    def _run(
        self, engine: SimulatedEngine, writer: "Writer", settings: StackSettings, *, is_preview: bool
    ) -> str | None:
        async def main() -> None:
            await deploy(settings, reader_for=lambda _: self.cluster.reader(), writer_for=lambda _: writer)

        try:
            with _event_loop():
                self._set_mocks(engine, is_preview=is_preview)
                _sync_await(run_in_stack(lambda: pulumi.run(main)))
        except KilledError:
            return "killed"
        except pulumi.RunError as raised:
            return str(raised)
        return None

    def _set_mocks(self, engine: SimulatedEngine, *, is_preview: bool) -> None:
        """Let Pulumi's SDK call `engine`; from Python 3.12 on, it needs the event loop of the thread."""
        ROOT.set(None)
        pulumi.runtime.set_mocks(
            NoMocks(),
            "headwater",
            self.name,
            preview=is_preview,
            logger=_LOGGER,
            monitor=engine,
            organization="organization",
        )
        ROOT.set(None)
        sdk: Any = SETTINGS
        sdk.callbacks = SimpleNamespace(
            register_resource_hook=lambda hook: engine.hooks.__setitem__(hook.name, hook)
        )


@attrs.define
class Writer:
    """Changes the cluster as `KafkaClusterWriter` does, one change after the other."""

    cluster: AccidentCluster
    clock: Clock
    users: Mapping[str, frozenset[str]] = attrs.field(factory=dict)

    def find_refusals(self, _: Plan, *, with_permissions: bool) -> Sequence[Problem]:
        assert with_permissions in (True, False)
        return ()

    def controller_problem(self, _: str) -> Problem | None:
        return None

    def repair(self, repairs: Sequence[Repair]) -> None:
        for repair in repairs:
            self.clock.tick()
            if repair.create:
                if repair.name in self.cluster.topics:
                    raise pulumi.RunError(f"could not repair {repair.name}: it exists")
                config = {key: value for key, value in repair.config.items() if value is not None}
                self.cluster.create(repair.name, repair.partitions or 1, config)
            elif repair.name not in self.cluster.topics:
                raise pulumi.RunError(f"could not repair {repair.name}: it does not exist")
            else:
                self.cluster.set_or_reset(repair.name, repair.config)
                self.cluster.expand(repair.name, repair.partitions or 0)

    def delete_topics(self, ids: Mapping[str, str]) -> None:
        self.users = {name: self.cluster.users(name) for name in self.cluster.topics}
        for name, id_ in ids.items():
            self.clock.tick()
            if name in self.cluster.topics and self.cluster.topics[name].topic_id == id_:  # as brokers do
                self.cluster.delete(name)

    def configure_ownership(self, settings: Mapping[str, str]) -> Sequence[Problem]:
        self.clock.tick()
        self.cluster.set_or_reset(OWNERSHIP_TOPIC, settings)
        return ()

    def write_ownership(self, change: OwnershipChange) -> None:
        for record in change.written:
            self.clock.tick()
            self.cluster.write_ownership(OwnershipChange((record,)))
        for key in change.deleted:
            self.clock.tick()
            self.cluster.write_ownership(OwnershipChange((), (key,)))


@contextmanager
def _patched(found: list[Planned], begun: list[Connection], clock: Clock) -> Iterator[None]:
    """Note the plan and the begin of the changes.

    Resources are registered one at a time, so that a series can be repeated, and nothing waits.
    """

    def plan_and_keep(*arguments: Any, **named: Any) -> Planned:  # noqa: ANN401 - those of plan_stack
        found.append(plan_stack(*arguments, **named))
        return found[-1]

    def provide_and_note(connection: Connection, variables: Mapping[str, str]) -> pulumi.ProviderResource:
        begun.append(connection)
        clock.planned()
        return kafka_provider(connection, variables)

    replaced: Mapping[str, object] = {
        "headwater.pulumi.program.plan_stack": plan_and_keep,
        "headwater.pulumi.program.kafka_provider": provide_and_note,
        "headwater.pulumi.program.uuid4": lambda: SimpleNamespace(hex=f"stack-{next(_IDS)}"),
        "headwater.pulumi.ordering._AT_A_TIME": 1,
        "headwater.pulumi.component._PROPAGATION_SECONDS": 0,
        # A quarter of the time of a run: positions in the source, which the simulated engine ignores.
        "pulumi.runtime.resource._get_stack_trace": StackTrace,
    }
    with ExitStack() as patches:
        for name, value in replaced.items():
            patches.enter_context(patch(name, value))
        # It logs the errors of a killed run, which are not awaited any more.
        patches.enter_context(patch.object(logging.getLogger("asyncio"), "disabled", new=True))
        yield


def discard_killed_runs() -> None:
    """End what killed runs have scheduled and never started: a later test of this process would report it.

    Pulumi schedules the registrations of hooks in the loop of the thread, which no run executes.
    """
    SETTINGS.rpc_manager.clear()
    SETTINGS.outputs.clear()
    with warnings.catch_warnings(), patch.object(logging.getLogger("asyncio"), "disabled", new=True):
        warnings.simplefilter("ignore")
        loop = _ensure_event_loop()  # type: ignore[no-untyped-call]
        for task in (pending := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        del pending
        gc.collect()


@contextmanager
def _event_loop() -> Iterator[None]:
    """A loop of its own: tasks and errors of a killed run must not reach the next one."""
    SETTINGS.rpc_manager.clear()
    SETTINGS.outputs.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # if the thread has no loop yet (Python 3.12)
        before = _ensure_event_loop()  # type: ignore[no-untyped-call]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        for task in (pending := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        asyncio.set_event_loop(before)
        loop.close()
