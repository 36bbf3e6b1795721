"""The order of registration: wave by wave, a limited number of topics at a time.

Registering thousands of resources at once is quadratic in Pulumi's Python SDK, hence the limit. The engine answers a
registration when it has carried it out, hence a wave that is awaited has grown before the next one starts: `depends_on`
would write every topic of a wave into the state of every topic of the next.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby

import pulumi

from infra.apply.component import InternalTopics
from infra.apply.registration import TopicResource

_AT_A_TIME = 64


async def register_all(components: Sequence[InternalTopics]) -> None:
    """Register the topics of all applications, after their repairs, and then record the setups.

    Raises `pulumi.RunError` if a topic could not be set up.
    """
    await asyncio.gather(*(component.setup.urn.future() for component in components))
    topics = sorted(
        ((component, topic) for component in components for topic in component.registration.topics),
        key=lambda pair: pair[1].wave,
    )
    for _, wave in groupby(topics, key=lambda pair: pair[1].wave):
        await asyncio.gather(*(_register(wave) for _ in range(_AT_A_TIME)))
    for component in components:
        await component.record()


async def _register(topics: Iterator[tuple[InternalTopics, TopicResource]]) -> None:
    """Register one topic after the other until there are no more; several do so from the same iterator."""
    for component, topic in topics:
        registered = component.topic(topic)
        await registered.urn.future()
        if not pulumi.runtime.is_dry_run() and not await registered.id.is_known():
            raise pulumi.RunError(f"{topic.name} could not be set up; what comes after it is left as it is")
