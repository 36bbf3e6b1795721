"""The order of registration: wave by wave, a limited number of topics at a time.

The engine answers a registration when it has carried it out. So a wave that is awaited has grown before the
next one starts; `depends_on` would write every topic of a wave into the state of every topic of the next.
More topics at a time would only wait in the engine, and all at once would be slower.

The first of those that the provider is asked about goes alone: it connects when it is first asked, and
several that ask at that moment may find each other's connection half open ("broker not connected").
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import attrs
import pulumi

from infra.apply.component import InternalTopics
from infra.apply.engine import TopicParent
from infra.apply.overtaking import SecondLook
from infra.apply.registration import AclResource, TopicResource

_AT_A_TIME = 64


@attrs.frozen
class _Due:
    """A resource with what its registration needs."""

    resource: TopicResource | AclResource
    parent: TopicParent
    look: SecondLook

    @property
    def turn(self) -> tuple[bool, int]:
        return self.resource.is_settled, self.resource.wave

    def decide(self) -> TopicResource | AclResource:
        """Return how the resource is registered as things are now."""
        resource = self.resource
        if isinstance(resource, TopicResource) and resource.grows and not pulumi.runtime.is_dry_run():
            return self.look.at(resource)
        return resource


async def register_all(components: Sequence[InternalTopics]) -> None:
    """Register topics and ACLs of all applications, after their repairs, and then record the setups.

    Raises `pulumi.RunError` if one could not be set up.
    """
    due = [
        _Due(resource, parent, component.second_look)
        for component in components
        for parent in [await component.engine_parent()]
        for resource in component.registration.resources
    ]
    resources = iter(sorted(due, key=lambda each: each.turn))
    await _register(islice(resources, 1))
    for _, wave in groupby(resources, key=lambda each: each.turn):
        await asyncio.gather(*(_register(wave) for _ in range(_AT_A_TIME)))
    for component in components:
        await component.record()


async def _register(resources: Iterator[_Due]) -> None:
    """Register one after the other until there are no more; several do so from the same iterator."""
    for due in resources:
        if not await due.parent.register(due.decide):
            raise pulumi.RunError(
                f"{due.resource.name} could not be set up; what comes after it is left as it is"
            )
