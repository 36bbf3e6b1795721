"""The order of registration: wave by wave, with a limited number of resources at a time.

The engine answers a registration after the operation. So when all answers of a wave are there, its topics are
expanded, and the next wave starts. With `depends_on`, the state of every topic would list all topics of the
wave before. More resources at a time would wait in the engine, and all at once would be slower.

The first resource is registered alone: the provider connects on its first request, and concurrent requests at
that moment may fail with "broker not connected".

In a large wave, each call in a thread registers several resources, one by one. Calls for single resources
would need a quarter more CPU time in this process.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

import attrs
import pulumi

from headwater.model.records import SetupRecord
from headwater.pulumi.component import InternalTopics, TopicParent, TopicRecheck
from headwater.pulumi.registration import AclResource, TopicResource

_AT_A_TIME = 64
_MOST_IN_A_CALL = 8


@attrs.frozen
class _Pending:
    """A resource that is not registered yet, its parent, and the check before its registration."""

    resource: TopicResource | AclResource
    parent: TopicParent
    recheck: TopicRecheck

    @property
    def position(self) -> tuple[bool, int]:
        return self.resource.is_settled, self.resource.wave

    def register(self) -> None:
        """Register the resource and wait for the engine; check a topic that expands again before.

        Raises `pulumi.RunError` if the registration failed.
        """
        if not self.parent.register(self._current_resource()):
            raise pulumi.RunError(
                f"{self.resource.name} could not be set up; resources after it are unchanged"
            )

    def _current_resource(self) -> TopicResource | AclResource:
        resource = self.resource
        if isinstance(resource, TopicResource) and resource.expands and not pulumi.runtime.is_dry_run():
            return self.recheck.reread_topic(resource)
        return resource


async def register_all(components: Sequence[InternalTopics]) -> Mapping[str, SetupRecord]:
    """Register topics and ACLs of all applications, after their repairs, and then record the setups.

    Returns application id → setup record.

    Raises:
        pulumi.RunError: A registration failed; later registrations are skipped.
    """
    pending = [
        _Pending(resource, parent, component.recheck)
        for component in components
        for parent in [await component.engine_parent()]
        for resource in component.registration.resources
    ]
    pending.sort(key=lambda each: each.position)
    await _register_wave(pending[:1])
    for _, wave in groupby(pending[1:], key=lambda each: each.position):
        await _register_wave(tuple(wave))
    recorded = {component.planned.application_id: await component.record() for component in components}
    return {id_: record for id_, record in recorded.items() if record is not None}


async def _register_wave(wave: Sequence[_Pending]) -> None:
    resources = iter(wave)
    in_a_call = min(max(len(wave) // _AT_A_TIME, 1), _MOST_IN_A_CALL)
    await asyncio.gather(*(_register_by_calls(resources, in_a_call) for _ in range(_AT_A_TIME)))


async def _register_by_calls(resources: Iterator[_Pending], in_a_call: int) -> None:
    """Register the resources, some in each call; several tasks share the iterator."""
    while some := tuple(islice(resources, in_a_call)):
        await asyncio.to_thread(_register_each, some)


def _register_each(resources: Iterable[_Pending]) -> None:
    for pending in resources:
        pending.register()
