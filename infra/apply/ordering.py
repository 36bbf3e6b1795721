"""The order of registration: wave by wave, with a limited number of resources at a time.

The engine answers a registration after the operation. So when all answers of a wave are there, its topics are
expanded, and the next wave starts. With `depends_on`, the state of every topic would list all topics of the
wave before. More resources at a time would wait in the engine, and all at once would be slower.

The first resource is registered alone: the provider connects on its first request, and concurrent requests at
that moment may fail with "broker not connected".
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice

import attrs
import pulumi

from infra.apply.component import InternalTopics, TopicRecheck
from infra.apply.engine import TopicParent
from infra.apply.registration import AclResource, TopicResource
from infra.model.record import SetupRecord

_AT_A_TIME = 64


@attrs.frozen
class _Pending:
    """A resource that is not registered yet, its parent, and the check before its registration."""

    resource: TopicResource | AclResource
    parent: TopicParent
    recheck: TopicRecheck

    @property
    def position(self) -> tuple[bool, int]:
        return self.resource.is_settled, self.resource.wave

    def decide(self) -> TopicResource | AclResource:
        """Return how the resource is registered, after a recheck of a topic that expands."""
        resource = self.resource
        if isinstance(resource, TopicResource) and resource.expands and not pulumi.runtime.is_dry_run():
            return self.recheck.current(resource)
        return resource


async def register_all(components: Sequence[InternalTopics]) -> Mapping[str, SetupRecord]:
    """Register topics and ACLs of all applications, after their repairs, and then record the setups.

    Returns application id → setup record.

    Raises:
        pulumi.RunError: A registration failed; the ones after it are skipped.
    """
    pending = [
        _Pending(resource, parent, component.recheck)
        for component in components
        for parent in [await component.engine_parent()]
        for resource in component.registration.resources
    ]
    resources = iter(sorted(pending, key=lambda each: each.position))
    await _register(islice(resources, 1))
    for _, wave in groupby(resources, key=lambda each: each.position):
        await asyncio.gather(*(_register(wave) for _ in range(_AT_A_TIME)))
    recorded = {component.planned.application_id: await component.record() for component in components}
    return {id_: record for id_, record in recorded.items() if record is not None}


async def _register(resources: Iterator[_Pending]) -> None:
    """Register the resources one by one; several tasks share the iterator."""
    for pending in resources:
        if not await pending.parent.register(pending.decide):
            raise pulumi.RunError(
                f"{pending.resource.name} could not be set up; resources after it are unchanged"
            )
