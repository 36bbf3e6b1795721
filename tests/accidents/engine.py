"""Pulumi's engine with the Kafka provider, in memory: the program registers its resources with it.

It repeats what the real ones do, as far as Headwater depends on it (`apply/registration.py`, ADRs 5 and 6):

- A resource is created, imported or updated while it is registered, and is in the state right after that.
- A registered component without a change of its inputs keeps its outputs. With a change it loses them until
  its outputs are registered.
- `ignoreChanges` replaces inputs by those of the state. What still differs is changed: fewer partitions by
  replacement, which `protect` in the state refuses; the rest by an update, which writes all settings.
- After a program without an error, resources that it did not register are deleted. `protect` in the state
  refuses that. Hooks of the state run before. With `retainOnDelete` the topic stays.

A run can be killed after any number of changes, and other clients can act between any two.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import pulumi
from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.sync_await import _sync_await

from headwater.pulumi.stack_state import COMPONENT_TYPE, SETUP_TYPE, TOPIC_TYPE
from tests.accidents.cluster import AccidentCluster

_PROVIDER_TYPE = "pulumi:providers:kafka"
_COMPONENTS = (COMPONENT_TYPE, SETUP_TYPE)


AFTER_PLAN = -1


class KilledError(Exception):
    """The run was killed: nothing that it does afterwards has an effect."""


@attrs.frozen
class Resource:
    """A resource in the state of a stack."""

    type: str
    name: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    protect: bool = False
    retain: bool = False
    hooks: tuple[str, ...] = ()


State = dict[str, Resource]
"""URN → resource."""


@attrs.define
class Clock:
    """Counts the changes of a run. After `ends_at` of them it is killed; before each, others may act.

    `others` is number of changes → what they do; `AFTER_PLAN` is between the plan and the first change.
    """

    ends_at: int | None = None
    others: Mapping[int, Callable[[], None]] = attrs.field(factory=dict)
    ticks: int = 0
    is_over: bool = False

    def planned(self) -> None:
        """Let others act after the plan was made."""
        if (act := self.others.get(AFTER_PLAN)) is not None:
            act()

    def tick(self) -> None:
        """Call it before each change.

        Raises:
            KilledError: The run was killed.
        """
        if not self.is_over and self.ticks == self.ends_at:
            self.is_over = True
        if self.is_over:
            raise KilledError
        act = self.others.get(self.ticks)
        self.ticks += 1
        if act is not None:
            act()


class NoMocks(pulumi.runtime.Mocks):
    """The monitor answers all requests itself."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        return args.name, args.inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        raise NotImplementedError(args.token)


class SimulatedEngine(MockMonitor):
    """One run of the engine on the state of a stack, which it changes step by step."""

    def __init__(self, cluster: AccidentCluster, state: State, clock: Clock) -> None:
        super().__init__(NoMocks())
        self._cluster = cluster
        self._state = state
        self._clock = clock
        self._seen: set[str] = set()
        self.hooks: dict[str, pulumi.ResourceHook] = {}

    def Invoke(self, request: Any) -> Any:  # noqa: ANN401, N802 - the protocol's
        answer: dict[str, Any] = {}
        if request.tok == "pulumi:pulumi:readStackResourceOutputs":
            answer = {
                "outputs": {
                    urn: {"type": resource.type, "outputs": dict(resource.outputs)}
                    for urn, resource in self._state.items()
                }
            }
        with _loop_of_thread():
            returned = _sync_await(rpc.serialize_properties(answer, {}))
        return resource_pb2.ResourceInvokeResponse(**{"failures": None, "return": returned})

    def RegisterResource(self, request: Any) -> Any:  # noqa: ANN401, N802 - the protocol's
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        with _loop_of_thread():
            inputs = dict(rpc.deserialize_properties(request.object))
        self._seen.add(urn)
        if request.type == _PROVIDER_TYPE:
            return self._answer(urn, request.name, inputs)
        try:
            if request.type in _COMPONENTS:
                outputs = self._component(urn, request, inputs)
            else:
                outputs = self._topic(urn, request, inputs)
        except _FailedError:
            return resource_pb2.RegisterResourceResponse(urn=urn, result=resource_pb2.Result.FAIL)
        return self._answer(urn, request.name, outputs)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: ANN401, N802 - the protocol's
        if request.urn in self._state:
            self._clock.tick()
            with _loop_of_thread():
                outputs = dict(rpc.deserialize_properties(request.outputs))
            self._state[request.urn] = attrs.evolve(self._state[request.urn], outputs=outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]

    def delete_others(self) -> str | None:
        """Delete what the program did not register; return the error, if there is one."""
        gone = [urn for urn in reversed(self._state) if urn not in self._seen]
        if protected := [urn for urn in gone if self._state[urn].protect]:
            return f"protected resources cannot be deleted: {', '.join(protected)}"
        for urn in gone:
            resource = self._state[urn]
            try:
                self._run_hooks(resource.hooks, urn, resource)
            except pulumi.RunError as refused:
                return str(refused)
            self._clock.tick()
            if resource.type == TOPIC_TYPE and not resource.retain and resource.name in self._cluster.topics:
                self._cluster.delete(resource.name)
            del self._state[urn]
        return None

    def _component(self, urn: str, request: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401
        old = self._state.get(urn)
        is_same = old is not None and old.inputs == inputs
        new = Resource(request.type, request.name, inputs, {}, request.protect)
        if not is_same:
            hooks = request.hooks.before_create if old is None else request.hooks.before_update
            self._run_hooks(hooks, urn, new)
        elif old is not None:
            new = attrs.evolve(new, outputs=old.outputs)
        if new != old:
            self._clock.tick()
            self._state[urn] = new
        return new.outputs

    def _topic(self, urn: str, request: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401
        old = self._state.get(urn)
        wanted: Mapping[str, Any]
        if old is None and request.importId:
            if request.importId not in self._cluster.topics:
                raise _FailedError(f"{request.importId} does not exist")
            wanted = _ignoring(inputs, self._read(request.importId), request.ignoreChanges)
            self._update(wanted, self._read(request.importId), is_protected=False)
        elif old is None:
            self._clock.tick()
            if request.name in self._cluster.topics:
                raise _FailedError(f"{request.name} exists")
            self._cluster.create(request.name, int(inputs["partitions"]), inputs["config"])
            wanted = inputs
        else:
            wanted = _ignoring(inputs, old.inputs, request.ignoreChanges)
            self._update(wanted, old.outputs, is_protected=old.protect)
        new = Resource(
            request.type,
            request.name,
            wanted,
            wanted,
            request.protect,
            request.retainOnDelete,
            tuple(request.hooks.before_delete),
        )
        if new != old:
            self._clock.tick()
            self._state[urn] = new
        return wanted

    def _update(self, wanted: Mapping[str, Any], known: Mapping[str, Any], *, is_protected: bool) -> None:
        if int(wanted["partitions"]) < int(known["partitions"]):
            if is_protected:
                raise _FailedError(f"{wanted['name']} is protected")
            self._clock.tick()
            self._cluster.delete(wanted["name"])
            self._cluster.create(wanted["name"], int(wanted["partitions"]), wanted["config"])
        elif _changed(wanted, known):
            self._clock.tick()
            if wanted["name"] not in self._cluster.topics:
                raise _FailedError(f"{wanted['name']} does not exist")
            self._cluster.replace_settings(wanted["name"], wanted["config"])
            self._cluster.expand(wanted["name"], int(wanted["partitions"]))

    def _read(self, name: str) -> Mapping[str, Any]:
        topic = self._cluster.topics[name]
        return {
            "name": name,
            "partitions": topic.partitions,
            "replicationFactor": topic.replication_factor,
            "config": dict(topic.config),
        }

    def _run_hooks(self, names: Iterable[str], urn: str, resource: Resource) -> None:
        for name in names:
            hook = self.hooks.get(name)
            if hook is None:
                raise pulumi.RunError(f"no hook {name}")
            answer = hook(
                pulumi.ResourceHookArgs(urn=urn, id=resource.name, name=resource.name, type=resource.type)
            )
            if answer is not None:
                _run(answer)

    def _answer(self, urn: str, id_: str, outputs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        with _loop_of_thread():
            serialized = _sync_await(rpc.serialize_properties(dict(outputs), {}))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=id_, object=serialized)


class _FailedError(Exception):
    """An operation of the provider failed."""


def _ignoring(inputs: Mapping[str, Any], known: Mapping[str, Any], ignored: Iterable[str]) -> dict[str, Any]:
    return {**inputs, **{key: known[key] for key in ignored if key in known}}


def _changed(wanted: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether the provider updates a topic. It replaces one with other replicas, which no run registers."""
    return any(wanted[key] != known.get(key) for key in ("partitions", "config"))


@contextmanager
def _loop_of_thread() -> Iterator[None]:
    """Give the thread of a request an event loop, which the SDK needs for values, and close it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _run(answer: Awaitable[None]) -> None:
    async def wait() -> None:
        await answer

    # Not `asyncio.run`: it leaves the thread without the event loop that Pulumi expects.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(wait())
    finally:
        loop.close()
