"""The Pulumi resources of one application: a component, its setup, its topics."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pulumi
from pulumi.runtime.rpc import UNKNOWN
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_exponential

from infra.apply.acl_registration import with_acls
from infra.apply.cluster_writer import ClusterWriter
from infra.apply.engine import TopicParent
from infra.apply.overtaking import SecondLook
from infra.apply.registration import register
from infra.apply.setup import Setup
from infra.apply.stack_state import (
    COMPONENT_TYPE,
    Repaired,
    StackState,
    record_outputs,
    topic_outputs,
)
from infra.model.record import RecordedTopic
from infra.observe import ClusterReader
from infra.planner import ApplicationPlan

_PROPAGATION_SECONDS = 30


@attrs.frozen
class Target:
    """The cluster that the resources of a stack are on, and how the state knows it."""

    provider: pulumi.ProviderResource
    reader: ClusterReader
    writer: ClusterWriter
    state: StackState


class InternalTopics(pulumi.ComponentResource):
    """The topics and ACLs of one application as its plan wants them.

    The constructor registers the component alone; `infra.apply.register_all` registers the resources of all
    applications in the plan's order and then records the setups. Outputs: `topics` (name → id, partitions,
    whether it is a sink), `initialProcessors`, `generatedNames`, `origins` (generated name → what its
    records descend from), `clusterId`.
    """

    def __init__(
        self,
        planned: ApplicationPlan,
        target: Target,
        guard: pulumi.ResourceHook,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        self.planned = planned
        self.registration = with_acls(register(planned.actions, target.state), planned, target.state)
        self._target = target
        self._guard = guard
        name = planned.application_id
        is_kept = planned.record is not None and not planned.record.retired
        # Its inputs never change: an update would take the record away until the run has finished.
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
            latest=target.state.repairs.get(name, Repaired()),
            topics=topic_outputs(attrs.evolve(topic, topic_id="") for topic in self._recorded()),
            opts=pulumi.ResourceOptions(parent=self, protect=is_kept),
        )

    @property
    def partitions(self) -> Mapping[str, int]:
        """Topic name → partition count after the run."""
        return {topic.name: topic.partitions for topic in self._recorded()}

    @property
    def second_look(self) -> SecondLook:
        target = self._target
        return SecondLook(target.reader, target.writer, target.state, self.planned.actions)

    async def engine_parent(self) -> TopicParent:
        """Wait until the engine knows the component, its repairs are done and its hook can be called."""
        await self._setup.urn.future()
        await self._guard._registered  # noqa: SLF001 - what the SDK awaits for each hook of a resource
        provider = self._target.provider
        urn, id_ = await provider.urn.future(), await provider.id.future()
        return TopicParent(
            urn=str(await self.urn.future()),
            provider=f"{urn}::{id_ or UNKNOWN}",
            hook=self._guard.name,
        )

    async def record(self) -> None:
        """Remember the setup, after everything was done; `up` looks up the ids of the topics that it made."""
        record = self.planned.record
        if record is not None and not pulumi.runtime.is_dry_run():
            # In a thread: the engine may call a hook meanwhile, which runs in this event loop.
            identified = await asyncio.to_thread(self._identified)
            record = attrs.evolve(record, topics={topic.name: topic for topic in identified})
        outputs: dict[str, Any] = {
            **record_outputs(record),
            "released": sorted(self.registration.released),
        }
        self.register_outputs(outputs)

    def _recorded(self) -> Sequence[RecordedTopic]:
        return tuple(self.planned.record.topics.values()) if self.planned.record else ()

    def _identified(self) -> list[RecordedTopic]:
        """Return the recorded topics with their ids."""
        topics = self._recorded()
        new = [topic.name for topic in topics if not topic.topic_id]
        ids = _look_up(self._target.reader, new) if new else {}
        if gone := [name for name in new if name not in ids]:
            raise pulumi.RunError(
                f"the set-up is not recorded, for these topics are not there: {', '.join(gone)} "
                "(deleted meanwhile, or left out by --target: run again without it)"
            )
        return [attrs.evolve(topic, topic_id=topic.topic_id or ids[topic.name]) for topic in topics]


def _look_up(reader: ClusterReader, names: Sequence[str]) -> Mapping[str, str]:
    """Return the ids of topics that were just made: not every broker knows them at once."""
    waiting = Retrying(
        retry=retry_if_result(lambda ids: len(ids) < len(names)),
        wait=wait_exponential(multiplier=0.05, max=1),
        stop=stop_after_delay(_PROPAGATION_SECONDS),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else {},
    )
    return waiting(reader.topic_ids, names)
