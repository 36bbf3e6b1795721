"""The Pulumi component of an application: what it registers with Pulumi's engine.

For each resource object, the Python SDK creates ten tasks, a stack trace and four blocking debug messages.
With thousands of topics that is most of a preview's time, and Headwater does not use the objects' outputs.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import grpc  # type: ignore[import-untyped]
import pulumi
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.rpc import UNKNOWN
from pulumi.runtime.settings import get_monitor, handle_grpc_error
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_exponential

from headwater.kafka import ClusterReader
from headwater.model.problems import ProblemsError
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner import ApplicationPlan, SettingChange, TopicAction
from headwater.planner.document_settings import change_texts
from headwater.pulumi.cluster_writer import ClusterWriter
from headwater.pulumi.registration import AclResource, Registration, Repair, TopicResource, register_expanded
from headwater.pulumi.stack_state import (
    ACL_TYPE,
    COMPONENT_TYPE,
    SETUP_TYPE,
    TOPIC_TYPE,
    RepairRecord,
    StackState,
    record_outputs,
    topic_outputs,
)


@attrs.frozen
class TopicParent:
    """The component of topics and ACLs: its URN, provider reference and deletion hook."""

    urn: str
    provider: str
    hook: str

    def register(self, resource: TopicResource | AclResource) -> bool:
        """Register a resource, block until the engine has answered, and return whether it succeeded.

        Raises `pulumi.RunError` if the engine is shutting down (the SDK may also raise `Exception` with its
        text).
        """
        monitor: Any = get_monitor()
        try:
            answer = monitor.RegisterResource(self._request(resource))
        except grpc.RpcError as error:
            handle_grpc_error(error)
        return bool(answer.result == resource_pb2.Result.SUCCESS)

    def _request(self, resource: TopicResource | AclResource) -> resource_pb2.RegisterResourceRequest:
        inputs = struct_pb2.Struct()
        inputs.update(resource.inputs)
        properties = _of_topic(resource) if isinstance(resource, TopicResource) else _of_acl(resource)
        hooks = [self.hook] if resource.guarded else []
        return resource_pb2.RegisterResourceRequest(
            name=resource.name,
            parent=self.urn,
            custom=True,
            object=inputs,
            provider=self.provider,
            retainOnDelete=resource.retain,
            hooks=resource_pb2.RegisterResourceRequest.ResourceHooksBinding(before_delete=hooks),
            acceptSecrets=True,
            supportsPartialValues=True,
            supportsResultReporting=True,
            **properties,
        )


def _of_topic(topic: TopicResource) -> dict[str, Any]:
    return {
        "type": TOPIC_TYPE,
        "protect": topic.protect,
        "importId": topic.name if topic.is_live else "",
        "ignoreChanges": topic.ignored,
    }


def _of_acl(acl: AclResource) -> dict[str, Any]:
    aliases = [acl.alias] if acl.alias is not None else []
    # Explicit, because otherwise the ACL inherits the component's protection.
    return {"type": ACL_TYPE, "protect": False, "importId": acl.import_id, "aliasURNs": aliases}


_PROPAGATION_SECONDS = 30


@attrs.frozen
class Target:
    """The cluster of a stack: its Pulumi provider, clients that read and write it, and the stack's state."""

    provider: pulumi.ProviderResource
    reader: ClusterReader
    writer: ClusterWriter
    state: StackState
    stack_id: str = ""
    """The id of the stack in ownership records; empty in the preview before the first `up`."""


class Setup(pulumi.ComponentResource):
    """Records the topics of a run before it creates them, and makes the repairs.

    The input `repairs` (topic name → text) changes when there is something to repair, so a preview shows it.
    The input `repaired` counts the runs with repairs, because the same repair may be necessary again. The
    input `changed` (setting → text) changes when the document has other settings than the setup record, which
    no topic may show. A hook makes the repairs before the application's topics are registered. The output
    `topics` is what a finished setup records, with empty ids: a later run recognizes the topics of an
    interrupted one by it.
    """

    def __init__(
        self,
        name: str,
        repairs: Sequence[Repair],
        writer: ClusterWriter,
        *,
        latest: RepairRecord,
        settings: Sequence[SettingChange] = (),
        topics: Mapping[str, Any],
        stack_id: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        if repairs:
            texts = {repair.name: repair.text for repair in repairs}
            latest = attrs.evolve(latest, times=latest.times + 1, texts=texts)
            hook = pulumi.ResourceHook(f"headwater:repair:{name}", lambda _: writer.repair(repairs))
            binding = pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=binding))
        changed = change_texts(settings, latest.settings)
        # Without a change there is no key: stacks that do not have it yet would show one.
        inputs = {
            "repairs": latest.texts,
            "repaired": latest.times,
            **({"changed": changed} if changed else {}),
        }
        super().__init__(SETUP_TYPE, name, inputs, opts)
        self.register_outputs({**inputs, "topics": topics, "stackId": stack_id})


@attrs.frozen
class TopicRecheck:
    """Reads a topic again right before its registration: another client may have expanded it since the plan.

    The provider's update fails on a topic that has the new partition count already, and Pulumi then shows it
    as an update without a difference until the next `up`.
    """

    reader: ClusterReader
    writer: ClusterWriter
    state: StackState
    actions: Iterable[TopicAction]

    def reread_topic(self, topic: TopicResource) -> TopicResource:
        """Return how `topic` is registered now. If it was expanded, make its other changes as repairs.

        Blocks on requests to the cluster. Raises `pulumi.RunError` if a repair failed.
        """
        partitions = self._live_partitions(topic.name)
        if partitions < topic.inputs["partitions"]:
            return topic
        action = next(action for action in self.actions if action.name == topic.name)
        decided = register_expanded(action, partitions, self.state)
        if decided.repairs:
            self.writer.repair(decided.repairs)
        return decided.topics[0]

    def _live_partitions(self, name: str) -> int:
        """Return the live count, 0 if it cannot be read: the cluster may still answer the provider."""
        try:
            return self.reader.partition_counts([name]).get(name, 0)
        except ProblemsError:
            return 0


class InternalTopics(pulumi.ComponentResource):
    """The topics and ACLs of one application, as planned.

    The constructor registers only the component. `headwater.pulumi.register_all` registers the resources of
    all applications in the order of the plan and then records the setups. Outputs: `topics` (name → id,
    partitions, whether it is a sink), `initialProcessors`, `initialBySource` (source topic → initial number
    of processors, only with `processors`), `generatedNames`, `origins` (generated name → digest of the user
    topics that its records descend from), `clusterId`.
    """

    def __init__(
        self,
        planned: ApplicationPlan,
        target: Target,
        registration: Registration,
        guard: pulumi.ResourceHook,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        self.planned = planned
        self.registration = registration
        self._target = target
        self._guard = guard
        name = planned.application_id
        is_kept = planned.record is not None and not planned.record.retired
        # The inputs never change: an update would remove the record from the state until the run ends.
        super().__init__(
            COMPONENT_TYPE,
            name,
            {"applicationId": name},
            pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(protect=is_kept, provider=target.provider), opts
            ),
        )
        self._setup = Setup(
            name,
            self.registration.repairs,
            target.writer,
            latest=target.state.repairs.get(name, RepairRecord()),
            settings=planned.settings,
            topics=topic_outputs(attrs.evolve(topic, topic_id="") for topic in self._recorded_topics()),
            stack_id=target.stack_id,
            opts=pulumi.ResourceOptions(parent=self, protect=is_kept),
        )

    @property
    def partitions(self) -> Mapping[str, int]:
        """Topic name → partition count after the run."""
        return {topic.name: topic.partitions for topic in self._recorded_topics()}

    @property
    def recheck(self) -> TopicRecheck:
        target = self._target
        return TopicRecheck(target.reader, target.writer, target.state, self.planned.actions)

    async def engine_parent(self) -> TopicParent:
        """Return the parent of the topics, once component and hook are registered and repairs are made."""
        await self._setup.urn.future()
        await self._guard._registered  # noqa: SLF001 - the SDK awaits this for each hook of a resource
        provider = self._target.provider
        urn, id_ = await provider.urn.future(), await provider.id.future()
        return TopicParent(
            urn=str(await self.urn.future()),
            provider=f"{urn}::{id_ or UNKNOWN}",
            hook=self._guard.name,
        )

    async def record(self) -> SetupRecord | None:
        """Record the finished setup in the outputs, with the ids of new topics; return it."""
        record = self.planned.record
        if record is not None and not pulumi.runtime.is_dry_run():
            # In a thread, because the engine may call a hook at the same time, which runs in this event loop.
            identified = await asyncio.to_thread(self._topics_with_ids)
            record = attrs.evolve(record, topics={topic.name: topic for topic in identified})
        outputs: dict[str, Any] = {
            **record_outputs(record),
            "released": sorted(self.registration.released),
            "stackId": self._target.stack_id,
        }
        self.register_outputs(outputs)
        return record

    def _recorded_topics(self) -> Sequence[RecordedTopic]:
        return tuple(self.planned.record.topics.values()) if self.planned.record else ()

    def _topics_with_ids(self) -> list[RecordedTopic]:
        topics = self._recorded_topics()
        new = [topic.name for topic in topics if not topic.topic_id]
        ids = _read_topic_ids(self._target.reader, new) if new else {}
        if missing := [name for name in new if name not in ids]:
            raise pulumi.RunError(
                f"the setup is not recorded, because these topics do not exist: {', '.join(missing)} "
                "(deleted during the run, or excluded by --target: run again without it)"
            )
        return [attrs.evolve(topic, topic_id=topic.topic_id or ids[topic.name]) for topic in topics]


def _read_topic_ids(reader: ClusterReader, names: Sequence[str]) -> Mapping[str, str]:
    """Return the ids of new topics; retry until all brokers know them or a timeout passes."""
    retrying = Retrying(
        retry=retry_if_result(lambda ids: len(ids) < len(names)),
        wait=wait_exponential(multiplier=0.05, max=1),
        stop=stop_after_delay(_PROPAGATION_SECONDS),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else {},
    )
    return retrying(reader.topic_ids, names)
