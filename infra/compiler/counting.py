"""PURE. The pass that decides partition counts, by the group leader's assignor or by the broker."""

from collections.abc import Mapping, Sequence

import attrs

from infra.compiler.assignor_counts import Wiring, assignor_order, emulated, settled
from infra.compiler.broker_counts import (
    broker_order,
    decided_by_broker,
    fixed_counts_clash,
    outgrown_changelogs,
    refused_by_client,
    status_text,
)
from infra.compiler.compilation import Compilation, tasks_of
from infra.compiler.copartitioning import Coerced, enforce, unchecked
from infra.compiler.topic_groups import TopicGroup
from infra.model.problems import Problem, ProblemCode, Severity
from infra.model.topology import Protocol

_MOST_ORDERS_TRIED = 16
_MOST_TOPICS_TRIED = 20_000


def count_partitions(compilation: Compilation) -> Compilation:
    """Counts of the repartition topics and tasks of the sub-topologies.

    While a source is missing Kafka Streams decides nothing; what does not depend on it is still counted here.
    """
    wiring = Wiring.of(compilation.groups, compilation.partitions)
    compilation = attrs.evolve(compilation, wiring=wiring)
    if compilation.application.protocol is Protocol.STREAMS:
        coerced = _by_broker(compilation)
    else:
        coerced = _by_assignor(compilation)
    tasks = tasks_of(wiring.groups, coerced.counts)
    return attrs.evolve(compilation, counts=coerced.counts, tasks=tasks).with_problems(coerced.problems)


def _by_assignor(compilation: Compilation) -> Coerced:
    wiring = compilation.wiring
    if wiring.absent:
        return enforce(compilation.copartitioned, settled(wiring), compilation.repartition)
    if not wiring.writers:
        not_checked = unchecked(compilation.copartitioned, wiring.known)
        return Coerced(wiring.known, not_checked)
    order = assignor_order(wiring.groups)
    coerced = _in_order(compilation, order)
    others = [_in_order(compilation, other).counts for other in _other_orders(wiring)]
    if not others:
        return coerced
    patient = enforce(compilation.copartitioned, settled(wiring), compilation.repartition).counts
    return attrs.evolve(
        coerced, problems=(*coerced.problems, *_dependent(compilation, coerced.counts, [patient, *others]))
    )


def _in_order(compilation: Compilation, order: Sequence[TopicGroup]) -> Coerced:
    return enforce(compilation.copartitioned, emulated(compilation.wiring, order), compilation.repartition)


def _other_orders(wiring: Wiring) -> list[tuple[TopicGroup, ...]]:
    """Orders that other application ids may lead to; none if no order can matter.

    The order matters only to a topic whose writers read, between them, something undecided and something
    else.
    """
    undecided = wiring.writers.keys() - wiring.known.keys()
    read = {group.id: len(group.sources) for group in wiring.groups}
    waits = {group.id: not undecided.isdisjoint(group.sources) for group in wiring.groups}
    writers = [wiring.writers[topic] for topic in undecided]
    if not any(sum(read[one] for one in ids) > 1 and any(waits[one] for one in ids) for ids in writers):
        return []
    tries = max(1, min(_MOST_ORDERS_TRIED, _MOST_TOPICS_TRIED // len(wiring.readers)))
    return [wiring.groups, wiring.groups[::-1], *(_shuffled(wiring.groups, step) for step in range(1, tries))]


def _shuffled(groups: Sequence[TopicGroup], step: int) -> tuple[TopicGroup, ...]:
    """One of many orders, always the same."""
    return tuple(sorted(groups, key=lambda group: (group.id * 7919 * step) % 104_729))


def _dependent(
    compilation: Compilation, made: Mapping[str, int], others: Sequence[Mapping[str, int]]
) -> tuple[Problem, ...]:
    problems = []
    for topic, details in compilation.repartition.items():
        counts = sorted({other[topic] for other in others if topic in other} | {made.get(topic, 0)} - {0})
        if topic in made and len(counts) > 1:
            alternatives = " or ".join(map(str, counts))
            problems.append(
                Problem(
                    code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
                    summary=(
                        f"{topic} gets {alternatives} partitions depending on the application id; with "
                        f"{compilation.application.id} Kafka Streams makes {made[topic]}."
                    ),
                    topic=topic,
                    expected=(
                        f"{others[0].get(topic, max(counts))}, the count if every input is decided first"
                    ),
                    found=f"{made[topic]} with this application id",
                    why=(
                        "The sub-topology that writes it reads several topics, and Kafka Streams goes "
                        "through sub-topologies in an order that hashes the application id. Renaming the "
                        "application changes the count."
                    ),
                    fix="Set an explicit count: repartition() with `partitions` before the operation.",
                    location=details.at,
                    severity=Severity.WARNING,
                )
            )
    return tuple(problems)


def _by_broker(compilation: Compilation) -> Coerced:
    wiring = compilation.wiring
    refusals = refused_by_client(compilation.topology, wiring.groups, compilation.copartitioned)
    first_fixed, clash = fixed_counts_clash(compilation.copartitioned, wiring)
    order = broker_order(wiring.groups)
    counts = settled(wiring) if wiring.absent else decided_by_broker(wiring, order)
    coerced = enforce(compilation.copartitioned, counts, compilation.repartition, first_fixed=first_fixed)
    answered = [attrs.evolve(problem, why=status_text(problem.code)) for problem in coerced.problems]
    outgrown = outgrown_changelogs(wiring.groups, coerced.counts, tasks_of(wiring.groups, coerced.counts))
    return Coerced(coerced.counts, (*refusals, *clash, *answered, *outgrown))
