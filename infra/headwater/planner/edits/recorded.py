"""What a setup record shows of an application before an edit, and what it leaves in doubt."""

from collections.abc import Iterable, Iterator

import attrs

from headwater.compiler.streams_config import LIBRARY_PARTITIONER
from headwater.model.compiled import CompiledApplication
from headwater.model.records import SetupRecord
from headwater.model.topology import Protocol
from headwater.model.versions import KafkaStreamsVersion, read_any_version
from headwater.planner.document_settings import PROTOCOL, TOPOLOGY, has_comparable_topology, setting_changes
from headwater.planner.edits.topologies import Topology
from headwater.planner.phrases import listed

COMPARE = (
    "Compare documents of both versions, for example with `--git`, or the code of the operators: it shows "
    "what is kept."
)
UNKNOWN_TOPOLOGY = "the topology before the edit is not known"
_EDITED = (
    "The topology or a default serde was edited since the last `pulumi up`, and its record has only names "
    "and counts of topics: it is not known whether the same operator uses the topic and can read its records."
)
_UNFINISHED = (
    "The first `pulumi up` of the application was interrupted: its record does not show which operator has "
    "used the topic since."
)
_NOT_COMPARABLE = (
    "Another version of Headwater has written the record of the last `pulumi up`: it does not show whether "
    "the topology was edited since, so it is not known whether the same operator uses the topic and can read "
    "its records."
)
_FORMATS = frozenset(
    {
        *(TOPOLOGY, "default.key.serde", "default.value.serde", "windowed.inner.class.serde"),
        *("default.list.key.serde.inner", "default.list.key.serde.type"),
        *("default.list.value.serde.inner", "default.list.value.serde.type"),
    }
)
"""The recorded settings that decide what records mean."""
_CLASS, _STATIC, _SUPPLIER = "partitioner.class", "static.partitioner.", "default.client.supplier"


@attrs.frozen(kw_only=True)
class Doubt:
    """Why it is not known what topics with the same name have.

    `topics`: the topics in doubt, None = all. `first`: what to do before the edit. `obstacle`: why a rolling
    restart is not safe. `is_edited`: the topology is another one for certain.
    """

    why: str
    topics: frozenset[str] | None = None
    first: str = COMPARE
    obstacle: str = UNKNOWN_TOPOLOGY
    is_edited: bool = False

    def concerns(self, topic: str) -> bool:
        """Return whether the topic is in doubt."""
        return self.topics is None or topic in self.topics


def recorded_version(record: SetupRecord) -> KafkaStreamsVersion | None:
    """Return the version at the last setup, None if it is not known."""
    return read_any_version(record.kafka_streams) if record.kafka_streams else None


def recorded_protocol(record: SetupRecord) -> Protocol | None:
    """Return the protocol at the last setup, None if it is not known."""
    found = record.settings.get(PROTOCOL)
    return next((protocol for protocol in Protocol if protocol.value == found), None)


def doubt_of(topology: Topology, record: SetupRecord) -> Doubt | None:
    """Return what the record leaves in doubt, None if this topology was set up."""
    if record.unfinished:
        return Doubt(why=_UNFINISHED)
    if not has_comparable_topology(topology.compiled, record):
        return Doubt(why=_NOT_COMPARABLE)
    changed = {change.key for change in setting_changes(with_recorded_id(topology.compiled, record), record)}
    if changed & _FORMATS:
        return Doubt(why=_EDITED, is_edited=True)
    return _partitioner_doubt(topology.compiled, record, changed)


def with_recorded_id(compiled: CompiledApplication, record: SetupRecord) -> CompiledApplication:
    """Return the application with the id of the record: digests differ for each application id."""
    return attrs.evolve(compiled, application=attrs.evolve(compiled.application, id=record.application_id))


def _partitioner_doubt(
    compiled: CompiledApplication, record: SetupRecord, changed: Iterable[str]
) -> Doubt | None:
    keys = sorted(filter(_is_of_partitioner, changed))
    topics = frozenset(_partitioned_topics(compiled))
    if not keys or not topics or _is_first_static(compiled, record):
        return None
    return Doubt(
        why=f"The partitioner was edited since the last `pulumi up` ({listed(keys)}): keys may get other "
        "partitions than their state and their records in flight.",
        topics=topics,
        first=f"Keep the partitioner. {COMPARE}",
        obstacle="keys may get other partitions",
    )


def _is_of_partitioner(key: str) -> bool:
    # Producers of an application with the library's supplier do not use `static.partitioner.class` alone.
    return key == _SUPPLIER or _names_partitioner(key)


def _names_partitioner(key: str) -> bool:
    name = key.removeprefix("producer.")
    return name == _CLASS or name.startswith(_STATIC)


def _is_first_static(compiled: CompiledApplication, record: SetupRecord) -> bool:
    """Return whether a partitioner is set that places keys as Kafka's default until partitions are added."""
    config = compiled.application.config
    classes = {value for key, value in config.items() if key.removeprefix("producer.") == _CLASS}
    names = {key.removeprefix(f"producer.{_STATIC}").removeprefix(_STATIC) for key in config}
    return (
        not any(map(_names_partitioner, record.settings))
        and classes <= {LIBRARY_PARTITIONER}
        and "initial.partitions" not in names
    )


def _partitioned_topics(compiled: CompiledApplication) -> Iterator[str]:
    """Yield the repartition topics, and the changelogs of the sub-topologies that read them."""
    for part in compiled.subtopologies:
        if part.repartition_topics:
            yield from part.repartition_topics
            yield from part.changelog_topics
    if not compiled.subtopologies:
        yield from (topic.name for topic in compiled.internal_topics)
