"""What a policy checks, which policies choose it, and the problem of a violation."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import attrs

from headwater.compiler.described.names import GENERATED
from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.compiler.streams_config import SetupMode, StreamsConfig
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.policies import Bounds, Policy, TopicClass
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import Application, Sink
from headwater.planner.plans import TopicAction


def matches_pattern(pattern: str, name: str) -> bool:
    """Return whether the whole name matches; False if the check would take too much memory."""
    return _match_pattern(pattern, name) is True


def applies_to(policy: Policy, application_id: str) -> bool:
    """Return whether the policy applies to the application; True in doubt."""
    return policy.applications is None or _match_pattern(policy.applications, application_id) is not False


def _match_pattern(pattern: str, name: str) -> bool | None:
    try:
        return _compile_pattern(pattern).matches(name)
    except UntranslatablePatternError:
        return None


@cache
def _compile_pattern(pattern: str) -> JavaPattern:
    return JavaPattern(pattern)


@attrs.frozen(kw_only=True)
class PolicyTopic:
    """A topic. None = not known: counts and `defaults` without a cluster.

    `own_name` is the name that a user chose or Kafka Streams generated: of a store or an operator, or the
    whole name of a managed topic.
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

    def effective_value(self, key: str) -> str | None:
        """Return the topic's own value, else the broker's; None if it is not known."""
        return self.config.get(key, (self.defaults or {}).get(key))

    @property
    def title(self) -> str:
        """Kind and name of the topic, to begin a sentence with."""
        return f"{'Sink' if self.topic_class is TopicClass.MANAGED else 'Internal'} topic {self.name}"


@attrs.frozen
class Subject:
    """An application, its topics, and the named stores without a changelog topic.

    `is_observed`: its document has the topics of a cluster, with their settings. `is_expansion`: not a run of
    a stack changes them, but an agent, an application or a command.
    """

    application: Application
    topics: tuple[PolicyTopic, ...]
    unlogged_stores: tuple[str, ...] = ()
    is_observed: bool = False
    is_expansion: bool = False


def declared_subject(compiled: CompiledApplication, *, counts_are_known: bool = True) -> Subject:
    """Return the application as its document declares it, without a cluster."""
    topics = tuple(_topics_of(compiled))
    if not counts_are_known:
        topics = tuple(attrs.evolve(topic, partitions=None) for topic in topics)
    return Subject(compiled.application, topics, _unlogged_stores(compiled), compiled.is_observed)


def planned_subject(
    compiled: CompiledApplication, actions: Mapping[str, TopicAction], snapshot: ClusterSnapshot
) -> Subject:
    """Return the application as a run leaves it. `actions` is topic name → action of the run."""
    after = tuple(_topic_after(topic, actions.get(topic.name), snapshot) for topic in _topics_of(compiled))
    return Subject(compiled.application, after, _unlogged_stores(compiled), compiled.is_observed)


def _topics_of(compiled: CompiledApplication) -> Iterator[PolicyTopic]:
    prefix = (
        f"{StreamsConfig.from_application(compiled.application).topic_prefix or compiled.application.id}-"
    )
    for topic in compiled.internal_topics:
        own_name = topic.node
        if topic.kind is not TopicKind.CHANGELOG:
            own_name = topic.name.removeprefix(prefix).removesuffix("-repartition")
        yield attrs.evolve(
            _declared_topic(topic, topic.name, own_name),
            topic_class=TopicClass(topic.kind.value),
            is_generated=topic.generated or GENERATED.fullmatch(own_name) is not None,
            at=topic.at,
        )
    for sink in compiled.sinks:
        yield _declared_topic(sink, sink.topic, sink.topic)


def _declared_topic(topic: InternalTopic | Sink, name: str, own_name: str) -> PolicyTopic:
    factor = topic.replication_factor or -1
    return PolicyTopic(
        name=name,
        own_name=own_name,
        topic_class=TopicClass.MANAGED,
        partitions=topic.partitions,
        replication_factor=factor if factor > 0 else None,
        config=topic.config,
    )


def _topic_after(topic: PolicyTopic, action: TopicAction | None, snapshot: ClusterSnapshot) -> PolicyTopic:
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


def _unlogged_stores(compiled: CompiledApplication) -> tuple[str, ...]:
    logged = {topic.node for topic in compiled.internal_topics if topic.kind is TopicKind.CHANGELOG}
    stores = {store for part in compiled.subtopologies for store in part.stores} - logged
    return tuple(sorted(store for store in stores if not GENERATED.fullmatch(store)))


def policy_violation(
    policy: Policy,
    subject: Subject,
    summary: str,
    *,
    topic: PolicyTopic | None = None,
    node: str | None = None,
    expected: str,
    found: str,
    why: str,
    fix: str,
) -> Problem:
    """Return the problem, at the topic's operator or the application. The policy's message replaces `why`."""
    return Problem(
        code=ProblemCode.POLICY_VIOLATED,
        summary=summary,
        application=subject.application.id,
        topic=topic.name if topic else None,
        node=node or (topic.own_name if topic else None),
        expected=f"{expected} (policy {policy.key}, {_file_and_line(policy.at)})",
        found=found,
        why=policy.message or why,
        fix=fix,
        location=(topic.at if topic else None) or subject.application.at,
        severity=policy.severity,
    )


def existing_topic_fix(subject: Subject, topic: PolicyTopic, key: str, value: str) -> str:
    """Return how to set a value on a topic that exists, where no run does: with `manual` setup."""
    if StreamsConfig.from_application(subject.application).setup_mode is not SetupMode.MANUAL:
        return ""
    return (
        " If the topic exists, also run `kafka-configs.sh --bootstrap-server BROKER --alter --topic "
        f"{topic.name} --add-config {key}={value}`: no run changes it with `internal.topics.setup: manual`."
    )


def bounds_text(bounds: Bounds, show: Callable[[int], str] = str) -> str:
    """Return `2 to 3`, `at least 2`, `at most 3`."""
    if bounds.least is not None and bounds.most is not None:
        if bounds.least == bounds.most:
            return show(bounds.least)
        return f"{show(bounds.least)} to {show(bounds.most)}"
    if bounds.least is not None:
        return f"at least {show(bounds.least)}"
    return f"at most {show(bounds.most or 0)}"


def _file_and_line(at: Location) -> str:
    return f"{at.file}:{at.line}" if at.line else at.file
