"""What a plan reads after the counts are known: processors (KIP-287), and how many records topics have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs

from headwater.kafka.reader import ClusterReader
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, reshard_journal, undeclared_inputs, wrong_counts
from headwater.model.nodes import TopicKind
from headwater.model.offset_metadata import decode_number, has_reshard, latest_mark, shows_processors
from headwater.model.problems import Problem, ProblemsError
from headwater.model.topology import Lifecycle

_CLIENTS = 16


def with_processor_state(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> ClusterSnapshot:
    """Return `snapshot` with the committed numbers of processors, and how many records topics have.

    Sends requests only for applications that declare processors and have state, and for those with a topic
    of another partition count than they require: an empty topic may be deleted, and it has no state to lose,
    and topics of a reshard that is not complete have parts of the state.
    """
    applications = tuple(compiled)
    stateful = tuple(_with_state(snapshot, applications))
    numbered = _with_numbers(reader, snapshot, stateful) if stateful else snapshot
    partitions = snapshot.partitions
    numbered = _with_undeclared(reader, numbered, applications)
    counted = {name: count for each in applications for name, count in wrong_counts(each, partitions).items()}
    return _with_records(reader, numbered, {**counted, **_to_read(numbered, stateful)})


def _with_undeclared(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Sequence[CompiledApplication]
) -> ClusterSnapshot:
    """Return `snapshot` with what applications have committed that declare no number of processors.

    A reshard may not be complete, and the application may have a number of processors nevertheless.
    """
    partitions = snapshot.partitions
    read = {
        each.application.id: {**journal, **undeclared_inputs(each, partitions)}
        for each in compiled
        if (journal := reshard_journal(each, partitions))
    }

    def find(id_: str) -> Sequence[str] | Problem:
        """Return what is committed, or why it could not be read."""
        try:
            return reader.offset_metadata(id_, read[id_])
        except ProblemsError as error:
            return error.problems[0]

    with ThreadPoolExecutor(_CLIENTS) as pool:  # each group is read by a client of its own
        found = dict(zip(read, pool.map(find, read), strict=True))
    texts = {id_: each for id_, each in found.items() if not isinstance(each, Problem)}
    undeclared = frozenset(id_ for id_, each in texts.items() if shows_processors(each))
    widest = {
        each.application.id: _widest(
            snapshot, (topic.name for topic in each.internal_topics if topic.kind is TopicKind.CHANGELOG)
        )
        for each in compiled
    }
    numbers = {id_: decode_number(texts[id_], widest[id_]) for id_ in undeclared}
    return attrs.evolve(
        snapshot,
        undeclared=undeclared,
        processors={
            **snapshot.processors,
            **{id_: number for id_, number in numbers.items() if number is not None},
        },
        resharded=frozenset(id_ for id_, each in texts.items() if has_reshard(each)),
        unread_reshards={id_: each for id_, each in found.items() if isinstance(each, Problem)},
    )


def _with_state(
    snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> Iterator[CompiledApplication]:
    for application in compiled:
        is_active = application.application.lifecycle is Lifecycle.ACTIVE
        if is_active and any(name in snapshot.topics for name in _changelogs_of(application)):
            yield application


def _with_numbers(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Sequence[CompiledApplication]
) -> ClusterSnapshot:
    """Return `snapshot` with the numbers that are committed with the offsets of the inputs.

    While an expansion copies, its numbers are committed with offsets of the changelog topics. If they cannot
    be read, the plan compares the declared number with the changelog topics only.
    """

    def read(application: CompiledApplication) -> Sequence[str] | Problem:
        """Return what is committed, or why it could not be read."""
        try:
            return reader.offset_metadata(
                application.application.id, _committed_counts(snapshot, application)
            )
        except ProblemsError as error:
            return error.problems[0]

    with ThreadPoolExecutor(_CLIENTS) as pool:  # each group is read by a client of its own
        found = dict(zip((each.application.id for each in compiled), pool.map(read, compiled), strict=True))
    texts = {id_: each for id_, each in found.items() if not isinstance(each, Problem)}
    widest = {each.application.id: _widest(snapshot, _changelogs_of(each)) for each in compiled}
    numbers = {id_: decode_number(each, widest[id_]) for id_, each in texts.items()}
    marks = {id_: latest_mark(each) for id_, each in texts.items()}
    return attrs.evolve(
        snapshot,
        processors={id_: number for id_, number in numbers.items() if number is not None},
        moves={id_: mark for id_, mark in marks.items() if mark is not None},
        unread_processors={id_: each for id_, each in found.items() if isinstance(each, Problem)},
    )


def _widest(snapshot: ClusterSnapshot, topics: Iterable[str]) -> int:
    """Return the largest partition count of `topics`; 0 = none exists."""
    live = map(snapshot.topics.get, topics)
    return max((topic.partitions for topic in live if topic is not None), default=0)


def _to_read(snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]) -> Mapping[str, int]:
    """Return changelog topic → its partition count, where processors are to be added: for an estimate."""
    return {
        name: snapshot.topics[name].partitions
        for application in compiled
        for name, declared in _changelogs_of(application).items()
        if name in snapshot.topics and _processors_of(snapshot, application.application.id, name) < declared
    }


def _with_records(
    reader: ClusterReader, snapshot: ClusterSnapshot, requested: Mapping[str, int]
) -> ClusterSnapshot:
    """Return `snapshot` with the numbers of records of the requested topics.

    They are omitted if the brokers do not answer or do not allow it: no decision requires them.
    """
    if not requested:
        return snapshot
    try:
        found = reader.record_counts(requested)
    except ProblemsError:
        return snapshot
    counted = {name: attrs.evolve(snapshot.topics[name], records=count) for name, count in found.items()}
    return attrs.evolve(snapshot, topics={**snapshot.topics, **counted})


def _processors_of(snapshot: ClusterSnapshot, application: str, topic: str) -> int:
    partitions = snapshot.topics[topic].partitions
    return min(partitions, snapshot.processors.get(application, partitions))


def _changelogs_of(application: CompiledApplication) -> Mapping[str, int]:
    """Return changelog topic → declared processors, of sub-topologies that have a number of them."""
    return {
        name: part.processors
        for part in application.subtopologies
        if part.processors is not None
        for name in sorted(part.changelog_topics)
    }


def _committed_counts(snapshot: ClusterSnapshot, application: CompiledApplication) -> Mapping[str, int]:
    """Return topic → partition count of what a number of processors is committed with.

    These are the inputs of sub-topologies that have such a number, and the first partition of each changelog
    topic, with which an expansion is announced.
    """
    changelogs = {name: 1 for name in _changelogs_of(application) if name in snapshot.topics}
    inputs = {
        topic: snapshot.topics[topic].partitions
        for part in application.subtopologies
        if part.processors is not None
        for topic in sorted(part.sources)
        if topic in snapshot.topics
    }
    return {**changelogs, **inputs}
