"""What policies look at: one application's topics, as declared or as they are after a run."""

from collections.abc import Iterator, Mapping

import attrs

from infra.compiler.described.names import GENERATED
from infra.compiler.streams_config import StreamsConfig
from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication, InternalTopic, TopicKind
from infra.model.policies import TopicClass
from infra.model.problems import Location
from infra.model.topology import Application, Sink
from infra.planner.actions import TopicAction


@attrs.frozen(kw_only=True)
class JudgedTopic:
    """A topic. None stands for what is not known: counts and `defaults` without a cluster.

    `own_name` is what a person chose, or Kafka Streams generated: a store's or an operator's name, a managed
    topic's whole name.
    """

    name: str
    own_name: str
    topic_class: TopicClass
    partitions: int | None
    replication_factor: int | None
    config: Mapping[str, str]
    defaults: Mapping[str, str] | None = None
    is_generated: bool = False
    at: Location | None = None

    def effective(self, key: str) -> str | None:
        """The value that holds, be it the topic's own or the broker's; None if nobody knows it here."""
        return self.config.get(key, (self.defaults or {}).get(key))

    @property
    def title(self) -> str:
        """To begin a sentence with."""
        return f"{'Sink' if self.topic_class is TopicClass.MANAGED else 'Internal'} topic {self.name}"


@attrs.frozen
class Subject:
    """An application, its topics, and the stores that have no changelog and that somebody named."""

    application: Application
    topics: tuple[JudgedTopic, ...]
    unlogged_stores: tuple[str, ...] = ()


def declared(compiled: CompiledApplication, *, counts_are_known: bool = True) -> Subject:
    """The application as its document declares it, no cluster being known."""
    topics = tuple(_topics(compiled))
    if not counts_are_known:
        topics = tuple(attrs.evolve(topic, partitions=None) for topic in topics)
    return Subject(compiled.application, topics, _unlogged(compiled))


def planned(
    compiled: CompiledApplication, actions: Mapping[str, TopicAction], snapshot: ClusterSnapshot
) -> Subject:
    """The application as a run leaves it. `actions` is topic name → what the run does with it."""
    after = tuple(_after(topic, actions.get(topic.name), snapshot) for topic in _topics(compiled))
    return Subject(compiled.application, after, _unlogged(compiled))


def _topics(compiled: CompiledApplication) -> Iterator[JudgedTopic]:
    prefix = f"{StreamsConfig.of(compiled.application).topic_prefix or compiled.application.id}-"
    for topic in compiled.internal_topics:
        own_name = topic.node
        if topic.kind is not TopicKind.CHANGELOG:
            own_name = topic.name.removeprefix(prefix).removesuffix("-repartition")
        yield attrs.evolve(
            _declared(topic, topic.name, own_name),
            topic_class=TopicClass(topic.kind.value),
            is_generated=topic.generated or GENERATED.fullmatch(own_name) is not None,
            at=topic.at,
        )
    for sink in compiled.sinks:
        yield _declared(sink, sink.topic, sink.topic)


def _declared(topic: InternalTopic | Sink, name: str, own_name: str) -> JudgedTopic:
    factor = topic.replication_factor or -1
    return JudgedTopic(
        name=name,
        own_name=own_name,
        topic_class=TopicClass.MANAGED,
        partitions=topic.partitions,
        replication_factor=factor if factor > 0 else None,
        config=topic.config,
    )


def _after(topic: JudgedTopic, action: TopicAction | None, snapshot: ClusterSnapshot) -> JudgedTopic:
    defaults = dict(snapshot.topic_defaults)
    if snapshot.default_min_insync_replicas is not None:
        defaults.setdefault("min.insync.replicas", str(snapshot.default_min_insync_replicas))
    if action is None:
        return attrs.evolve(topic, defaults=defaults)
    return attrs.evolve(
        topic,
        partitions=action.partitions,
        config=action.config,
        defaults=defaults,
        replication_factor=action.replication_factor if action.replication_factor > 0 else None,
    )


def _unlogged(compiled: CompiledApplication) -> tuple[str, ...]:
    logged = {topic.node for topic in compiled.internal_topics if topic.kind is TopicKind.CHANGELOG}
    stores = {store for part in compiled.subtopologies for store in part.stores} - logged
    return tuple(sorted(store for store in stores if not GENERATED.fullmatch(store)))
