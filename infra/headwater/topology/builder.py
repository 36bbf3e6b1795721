"""`StreamsBuilder` and `Topology`: the calls that begin a topology, and the document that they make."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from headwater.model.problems import ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import parse_document
from headwater.spec.yaml_text import document_yaml
from headwater.topology.calls import Calls, Class, Handles, Named, Options, Text, class_name, plain_options
from headwater.topology.stream_or_table import GlobalKTable
from headwater.topology.streams import KStream, KTable


@attrs.frozen
class BuiltDocument:
    """A topology document; `data` is what a file contains (docs/documents.md)."""

    data: Mapping[str, Any]

    def yaml(self) -> str:
        """Return the document as YAML."""
        return document_yaml(self.data)

    def write(self, file: str | Path) -> None:
        """Write the document to a YAML file, which all commands take; create its folder if necessary."""
        self.checked()
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(self.yaml(), encoding="utf-8")

    def checked(self) -> TopologyDocument:
        """Return the typed document.

        Raises:
            ProblemsError: It does not fit the schema, or has other errors.
        """
        loaded = parse_document(self.data)
        if wrong := errors(loaded.problems):
            raise ProblemsError(wrong)
        (document,) = loaded.documents
        return document


class Topology:
    """A topology of Kafka Streams' Processor API. Each call returns the topology itself."""

    def __init__(self) -> None:
        self._calls = Calls(Handles())

    def add_source(
        self,
        name: str,
        topic: str | Sequence[str] | None = None,
        *,
        pattern: str | None = None,
        offset_reset: str | Options | None = None,
        timestamp: Text | None = None,
        serdes: Options | None = None,
    ) -> "Topology":
        """Add a node that reads one or more topics, or those whose names match a pattern."""
        options = {"offset_reset": offset_reset, "timestamp": timestamp, "serdes": serdes}
        self._calls.add("addSource", name=name, pattern=pattern, **_topic_options(topic), **options)
        return self

    def add_processor(
        self,
        name: str,
        class_: Class | None = None,
        *,
        parents: Sequence[str],
        stores: Sequence[Named] | None = None,
    ) -> "Topology":
        """Add a node with a `Processor` of `headwater_spark.processors` below `parents`."""
        options = {"parents": parents, "class_": class_name(class_), "stores": stores}
        self._calls.add("addProcessor", name=name, **options)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | None = None,
        *,
        parents: Sequence[str],
        topic_expression: Text | None = None,
        extractor: str | None = None,
        partitioner: Any = None,  # noqa: ANN401 - text or options
        serdes: Options | None = None,
    ) -> "Topology":
        """Add a node that writes to a topic, or to topics that an expression or an extractor chooses."""
        chosen = {"topic": topic, "topic_expression": topic_expression, "extractor": extractor}
        options = {"partitioner": partitioner, "serdes": serdes}
        self._calls.add("addSink", name=name, parents=parents, **chosen, **options)
        return self

    def add_state_store(
        self,
        name: str,
        *,
        kind: str | None = None,
        type_: str | None = None,
        retention: str | int | None = None,
        window_size: str | int | None = None,
        retain_duplicates: bool | None = None,
        shared: bool | None = None,
        logging: bool | Options | None = None,
        caching: bool | None = None,
        serdes: Options | None = None,
        keyed: str | None = None,
        processors: Sequence[str] | None = None,
    ) -> "Topology":
        """Add a state store, and connect it to `processors`."""
        self._calls.add(
            "addStateStore",
            name=name,
            kind=kind,
            type_=type_,
            retention=retention,
            window_size=window_size,
            retain_duplicates=retain_duplicates,
            shared=shared,
            logging=logging,
            caching=caching,
            serdes=serdes,
            keyed=keyed,
            processors=processors,
        )
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> "Topology":
        """Connect a processor to stores that were added."""
        self._calls.add("connectProcessorAndStateStores", processor=processor, stores=stores)
        return self

    def add_read_only_state_store(
        self,
        store: Named,
        topic: str,
        *,
        source_name: str,
        name: str,
        class_: Class | None = None,
        timestamp: Text | None = None,
        serdes: Options | None = None,
    ) -> "Topology":
        """Add a store that only the processor `name` fills, from a topic that is its changelog."""
        options = {"class_": class_name(class_), "timestamp": timestamp, "serdes": serdes}
        names = {"source_name": source_name, "name": name}
        self._calls.add("addReadOnlyStateStore", store=store, topic=topic, **names, **options)
        return self

    def document(
        self,
        application_id: str,
        *,
        config: Options | None = None,
        application: Options | None = None,
        topics: Options | None = None,
        acls: Options | None = None,
        leftovers: Options | None = None,
    ) -> BuiltDocument:
        """Return the document of the calls so far.

        Args:
            application_id: Kafka Streams' `application.id`.
            config: Kafka Streams' configs.
            application: further keys of the section `application`, such as `setup` and `kafkaStreams`.
            topics: managed sink topics by name.
            acls: the section `acls`.
            leftovers: the section `leftovers`.

        Raises:
            ValueError: `application` has the id, or configs in addition to `config`.
        """
        own = {"id": application_id, **({"config": plain_options(config)} if config else {})}
        if twice := sorted(own.keys() & (application or {}).keys()):
            raise ValueError(f"Give {' and '.join(twice)} as arguments, not in `application`.")
        sections = {"topics": topics, "acls": acls, "leftovers": leftovers}
        return BuiltDocument(
            {
                "application": {**own, **plain_options(application or {})},
                "topology": self._calls.steps(),
                **{name: plain_options(section) for name, section in sections.items() if section},
            }
        )


class StreamsBuilder(Topology):
    """Kafka Streams' `StreamsBuilder`; calls of the Processor API and of the DSL can be mixed."""

    def stream(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        pattern: str | None = None,
        name: str | None = None,
        offset_reset: str | Options | None = None,
        timestamp: Text | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> KStream:
        """Return the stream of one or more topics, or of those whose names match a pattern."""
        options = {"offset_reset": offset_reset, "timestamp": timestamp, "serdes": serdes, "as_": as_}
        return KStream(
            self._calls.add("stream", name=name, pattern=pattern, **_topic_options(topic), **options)
        )

    def table(
        self,
        topic: str,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        offset_reset: str | Options | None = None,
        timestamp: Text | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> KTable:
        """Return the table of a topic."""
        options = {"offset_reset": offset_reset, "timestamp": timestamp, "serdes": serdes, "as_": as_}
        return KTable(self._calls.add("table", topic=topic, name=name, materialized=materialized, **options))

    def global_table(
        self,
        topic: str,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> GlobalKTable:
        """Return the global table of a topic: each instance has all of its records."""
        options = {"name": name, "materialized": materialized, "serdes": serdes, "as_": as_}
        return GlobalKTable(self._calls.add("globalTable", topic=topic, **options))

    def add_global_store(
        self,
        store: Named,
        topic: str,
        *,
        class_: Class | None = None,
        name: str | None = None,
        source_name: str | None = None,
        serdes: Options | None = None,
    ) -> "StreamsBuilder":
        """Add a global store that a `Processor` fills from a topic."""
        options = {"class_": class_name(class_), "name": name, "source_name": source_name, "serdes": serdes}
        self._calls.add("addGlobalStore", store=store, topic=topic, **options)
        return self


def _topic_options(given: str | Sequence[str] | None) -> dict[str, Any]:
    return {"topic": given} if given is None or isinstance(given, str) else {"topics": list(given)}
