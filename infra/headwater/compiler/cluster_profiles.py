"""Settings of topics as the cluster accepts them: what its profile refuses or forces, what is absent."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.cluster_profiles import PLAIN, RELIED_ON, TUNING, ClusterProfile
from headwater.model.compiled import InternalTopic
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import Application, DocumentForm, Sink, TopologyDocument


def accepted_config(
    config: Mapping[str, str], application: Application, overrides: Collection[str] = ()
) -> Mapping[str, str]:
    """Return what Headwater declares of the settings that Kafka Streams would send.

    Settings declared as absent are omitted. So are settings that the cluster refuses, if they only tune the
    sizes of files and no user has declared them, in `topic.` configs or in the `overrides` of a store. What
    the cluster forces is set.
    """
    # As in Kafka Streams, the settings of one store have priority.
    profile, absent = application.cluster_profile, application.absent_topic_configs.difference(overrides)
    if profile is None and not absent:
        return config
    declared = (*overrides, *(key.removeprefix("topic.") for key in application.config))
    omitted = TUNING.difference(declared)
    kept = {
        key: value
        for key, value in config.items()
        if key not in absent and not (key in omitted and profile is not None and profile.refuses(key))
    }
    return dict(sorted({**kept, **({} if profile is None else profile.forced)}.items()))


def accepted_replicas(declared: int | None, application: Application) -> int:
    """Return the declared number of replicas, else the only number that the cluster accepts, else -1."""
    if declared is not None and declared > 0:
        return declared
    profile = application.cluster_profile
    return (profile.replication_factor if profile else None) or -1


def with_accepted_settings(sinks: Sequence[Sink], application: Application) -> tuple[Sink, ...]:
    """Return managed sinks with what the cluster forces, and with the only number of replicas it accepts."""
    profile = application.cluster_profile
    if profile is None:
        return tuple(sinks)
    return tuple(
        attrs.evolve(
            sink,
            config={**profile.forced, **sink.config},
            replication_factor=sink.replication_factor or profile.replication_factor,
        )
        for sink in sinks
    )


def with_profile(
    documents: Sequence[TopologyDocument], profile: ClusterProfile | None
) -> Sequence[TopologyDocument]:
    """Return the documents with the cluster's profile where they declare none; itself without changes."""
    if profile is None or all(document.application.cluster_profile for document in documents):
        return documents
    return tuple(
        document
        if document.application.cluster_profile
        else attrs.evolve(
            document,
            application=attrs.evolve(
                document.application, cluster_profile=profile, is_profile_recognized=True
            ),
        )
        for document in documents
    )


def profile_problems(
    application: Application, topics: Iterable[InternalTopic], sinks: Iterable[Sink], form: DocumentForm
) -> Iterator[Problem]:
    """Yield a problem for each setting that the cluster refuses: one for all internal topics that have it.

    `form` of the document decides where a store has its settings.
    """
    profile = application.cluster_profile
    if profile is None:
        return
    check = _Check(application, profile, StreamsConfig.from_application(application).topic_overrides, form)
    reported: set[str] = set()
    for topic in topics:
        for key, value in topic.config.items():
            if key not in reported and (accepted := check.accepted_value(key, value)) is not None:
                reported.add(key)
                yield check.internal_topic_problem(topic, key, accepted)
    declared = application.config.get("replication.factor", "")
    if declared.strip().isdecimal() and check.is_other_factor(int(declared)):
        yield check.replicas_problem(
            declared, "replication.factor", application.locate_config("replication.factor")
        )
    for sink in sinks:
        for key, value in sink.config.items():
            if (accepted := check.accepted_value(key, value)) is not None:
                yield check.sink_problem(sink, key, accepted)
        if sink.replication_factor is not None and check.is_other_factor(sink.replication_factor):
            yield check.replicas_problem(
                str(sink.replication_factor), "replicationFactor", application.at, sink.topic
            )


_NOT_SET = "not set"


@attrs.frozen
class _Difference:
    """The value of a setting that is declared or sent, and what the cluster accepts."""

    key: str
    found: str
    accepted: str


@attrs.frozen
class _Check:
    application: Application
    profile: ClusterProfile
    declared: Mapping[str, str]
    form: DocumentForm

    def accepted_value(self, key: str, value: str) -> str | None:
        """Return what the cluster accepts of `key` if it is not `value`, else None."""
        if self.profile.refuses(key):
            return _NOT_SET
        if (forced := self.profile.forced.get(key, value)) != value:
            return forced
        least, most = self.profile.limits.get(key, (None, None))
        is_number = value.lstrip("-").isdecimal()
        if least is not None and most is not None and is_number and not least <= int(value) <= most:
            return f"{least} to {most}"
        return None

    def is_other_factor(self, factor: int) -> bool:
        return factor > 0 and self.profile.replication_factor not in (None, factor)

    def internal_topic_problem(self, topic: InternalTopic, key: str, accepted: str) -> Problem:
        name = f"topic.{key}"
        if key in self.declared:
            fix = (
                f"Remove `{name}`, or set it to `null`."
                if accepted == _NOT_SET
                else f"Set `{name}` to {accepted}."
            )
            at = self.application.locate_config(name)
        else:
            fix = self._alternative_text(topic, key)
            at = topic.at or self.application.at
        return self._profile_problem(topic.name, _Difference(key, topic.config[key], accepted), fix, at)

    def _alternative_text(self, topic: InternalTopic, key: str) -> str:
        if key in RELIED_ON:
            return (
                f"Kafka Streams relies on it for {topic.node}: use a store that needs no `{key}`, or run the "
                "application on a cluster that accepts it."
            )
        match self.form:
            case DocumentForm.DESCRIBED:
                where = f"`overrides` of {topic.node} below `describe.stores`"
                return f"Remove `{key}` in the code, and from {where}."
            case DocumentForm.EXPORTED:
                return f"Remove `{key}` in the code, where store {topic.node} is created, and export again."
            case DocumentForm.OBSERVED:
                return f"Remove `{key}` from the `config` of {topic.name} below `observed.topics`."
            case DocumentForm.CALLS:
                return f"Remove `{key}` from the `logging` of {topic.node}."

    def sink_problem(self, sink: Sink, key: str, accepted: str) -> Problem:
        fix = (
            f"Remove `{key}` from the `config` of {sink.topic}."
            if accepted == _NOT_SET
            else f"Set `{key}` of {sink.topic} to {accepted}."
        )
        difference = _Difference(key, sink.config[key], accepted)
        return self._profile_problem(sink.topic, difference, fix, self.application.at)

    def replicas_problem(self, found: str, key: str, at: Location, topic: str | None = None) -> Problem:
        expected = str(self.profile.replication_factor)
        fix = f"Set `{key}` to {expected}, or remove it."
        return self._profile_problem(topic, _Difference(key, found, expected), fix, at)

    def _profile_problem(
        self, topic: str | None, difference: "_Difference", fix: str, at: Location
    ) -> Problem:
        title = self.profile.title
        return Problem(
            code=ProblemCode.NOT_ON_CLUSTER,
            summary=f"{title[0].upper()}{title[1:]} does not accept `{difference.key}: {difference.found}`.",
            application=self.application.id,
            topic=topic,
            expected=f"`{difference.key}` {difference.accepted}",
            found=f"`{difference.found}`",
            why="The brokers would refuse the topic, or ignore the setting.",
            fix=fix + self._other_profile(),
            location=at,
        )

    def _other_profile(self) -> str:
        if not self.application.is_profile_recognized:
            return f" Or correct `application.clusterProfile: {self.profile.name}`."
        return (
            f" The cluster was recognized as `{self.profile.name}`: if it accepts this nevertheless, declare "
            f"`application.clusterProfile: {PLAIN.name}`."
        )
