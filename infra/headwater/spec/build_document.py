"""Build the model's `TopologyDocument` from a document that fits the schema."""

from pathlib import Path
from typing import Any

from headwater.compiler.java.config_values import trim_text
from headwater.model.acls import AclDeclaration, InternalTopicAcls
from headwater.model.cluster_profiles import PROFILES
from headwater.model.durations import parse_duration
from headwater.model.nodes import TopicKind
from headwater.model.operators import Branch, Split, Step
from headwater.model.problems import Location, Problem, ProblemCode, shorten_text
from headwater.model.topology import (
    Application,
    CreatedBy,
    DescribedTopology,
    Leftovers,
    Lifecycle,
    ObservedTopic,
    ObservedTopology,
    Protocol,
    Setup,
    Sink,
    StoreDetail,
    TopologyDocument,
    Unknown,
    UnknownDetails,
)
from headwater.model.versions import DEFAULT_VERSION
from headwater.spec.build_operators import BUILDERS, complete_options
from headwater.spec.build_stores import (
    Options,
    find_absent_configs,
    read_config,
    read_duration,
    read_topic_config,
)
from headwater.spec.exported import exported_topology
from headwater.spec.files import DOCUMENT, read_confined
from headwater.spec.locations import PathPart, Position, RawDocument, json_pointer
from headwater.spec.versions import declared_version


def build_document(raw: RawDocument) -> tuple[TopologyDocument | None, tuple[Problem, ...]]:
    """Return the typed document, None if its described text cannot be read, and problems."""
    data: dict[str, Any] = raw.data
    application = _build_application(raw, data)
    sinks = tuple(_build_sink(topic, options or {}) for topic, options in data.get("topics", {}).items())
    if "topology" in data:
        steps = _Steps(raw.file).steps(data["topology"], raw.position.child("topology"), ("topology",))
        return TopologyDocument(application, steps=steps, sinks=sinks), ()
    if "observed" in data:
        observed = _observed_topology(raw, data["observed"])
        return TopologyDocument(application, observed=observed, sinks=sinks), ()
    if "exported" in data:
        exported, problems = exported_topology(raw, data["exported"])
        if exported is None:
            return None, problems
        return TopologyDocument(application, exported=exported, sinks=sinks), problems
    described, problems = _described_topology(raw, data["describe"], application.id)
    if described is None:
        return None, problems
    return TopologyDocument(application, described=described, sinks=sinks), problems


def _described_topology(
    raw: RawDocument, given: str | Options, application_id: str
) -> tuple[DescribedTopology | None, tuple[Problem, ...]]:
    """Return the described topology and problems. A file must be in or below the document's folder."""
    options: Options = {"file": given} if isinstance(given, str) else given
    path = ("describe",) if isinstance(given, str) else ("describe", "file" if "file" in options else "text")
    at = raw.location(path) or Location(raw.file)
    text, file = options.get("text", ""), raw.file
    if isinstance(given, str) and "\n" in given:
        return None, (_text_as_name(at),)
    if "file" in options:
        name, folder = options["file"], Path(raw.file).parent
        content = read_confined(folder, name, DOCUMENT, code=ProblemCode.UNREADABLE_DESCRIBE, at=at)
        if not isinstance(content, str):
            return None, (_outside_problem(name, at) if content is None else content,)
        text, file = content, str(folder / name)
    elif not file.endswith(".json"):  # so that the file has the same line numbers
        text = "\n" * at.line + text
    from headwater.describe import read_description, without_prefix  # noqa: PLC0415 - imports the compiler, which documents with calls do not need

    chosen = options.get("topology")
    nodes, problems = read_description(text, file, None if chosen is None else str(chosen))
    described = DescribedTopology(
        without_prefix(nodes, application_id),
        at=at,
        repartition_partitions=dict(options.get("repartitions", {})),
        stores={name: _build_detail(detail) for name, detail in options.get("stores", {}).items()},
        copartitioned=tuple(tuple(group) for group in options.get("copartitioned", ())),
        created_by={topic: CreatedBy(call) for topic, call in options.get("createdBy", {}).items()},
        unknown=_build_unknown(options.get("unknown", {})),
    )
    return described, problems


def _text_as_name(at: Location) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DESCRIBE,
        summary="`describe` must be the name of a file, or a mapping.",
        expected="`text: |` below `describe`, and below it the text",
        found="several lines of text",
        why="Text below `describe` itself is the name of a file.",
        fix="Write `describe:`, on the next line `text: |`, and indent the text deeper than `text`.",
        location=at,
    )


def _outside_problem(name: str, at: Location) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DESCRIBE,
        summary="`file` is outside of the document's folder.",
        expected="a file in or below the document's folder",
        found=f"`{shorten_text(name)}`",
        why="A document must not be able to read any file of this machine.",
        fix="Move the text into the document's folder, or into the document with `text: |`.",
        location=at,
    )


def _build_unknown(options: dict[str, Any]) -> UnknownDetails:
    return UnknownDetails(
        stores={name: tuple(details) for name, details in options.get("stores", {}).items()},
        repartitions=tuple(options.get("repartitions", ())),
        created_by=tuple(options.get("createdBy", ())),
        application=tuple(options.get("application", ())),
    )


def _build_detail(options: dict[str, Any]) -> StoreDetail:
    default = StoreDetail()
    return StoreDetail(
        kind=options.get("kind"),
        retention_ms=read_duration(options, "retention"),
        retain_duplicates=options.get("retainDuplicates", default.retain_duplicates),
        logging=options.get("logging", default.logging),
        overrides=read_topic_config(options.get("overrides")),
        source_topic=options.get("sourceTopic"),
        has_own_changelog=options.get("ownChangelog", default.has_own_changelog),
    )


def _observed_topology(raw: RawDocument, options: Options) -> ObservedTopology:
    """Return the observed topics, with locations of topics, sources and open questions."""
    return ObservedTopology(
        topics=tuple(_build_topic(raw, name, given) for name, given in options["topics"].items()),
        at=_location_at(raw, "observed"),
        sources=dict(options.get("sources", {})),
        locations={
            topic: _location_at(raw, "observed", "sources", topic) for topic in options.get("sources", {})
        },
        unknown={
            Unknown(word): _location_at(raw, "observed", "unknown", index)
            for index, word in enumerate(options["unknown"])
        },
    )


def _build_topic(raw: RawDocument, name: str, options: dict[str, Any]) -> ObservedTopic:
    return ObservedTopic(
        name=name,
        kind=TopicKind(options["kind"]),
        partitions=options["partitions"],
        replication_factor=options.get("replicationFactor", -1),
        config=read_config(options["config"]) if "config" in options else None,
        at=_location_at(raw, "observed", "topics", name),
    )


def _location_at(raw: RawDocument, *path: PathPart) -> Location:
    return raw.location(path, at_key=isinstance(path[-1], str)) or Location(raw.file)


def _build_application(raw: RawDocument, data: Options) -> Application:
    options = data["application"]
    return Application(
        id=options["id"],
        at=raw.location(("application", "id")) or Location(raw.file),
        protocol=_read_protocol(options),
        kafka_streams=declared_version(options) or DEFAULT_VERSION,
        names_version=options.get("kafkaStreams") is not None,
        config=read_config(options.get("config")),
        config_locations=_config_locations(raw, options.get("config") or {}),
        absent_topic_configs=find_absent_configs(options.get("config")),
        cluster_profile=PROFILES.get(options.get("clusterProfile", "")),
        lifecycle=Lifecycle(options.get("lifecycle", Lifecycle.ACTIVE)),
        setup=_build_setup(options.get("setup", {})),
        renamed_from=options.get("renamedFrom"),
        acls=_build_acls(raw, data.get("acls")),
        processors=_read_processors(options),
        leftovers=_build_leftovers(raw, data.get("leftovers", {})),
    )


def _config_locations(raw: RawDocument, configs: Options) -> dict[str, Location]:
    path = ("application", "config")
    return {key: at for key in configs if (at := raw.location((*path, key))) is not None and at.line}


def _read_processors(options: Options) -> int | None:
    declared: int | str = options.get("processors", "follow")
    return declared if isinstance(declared, int) else None


def _build_acls(raw: RawDocument, options: Options | None) -> AclDeclaration | None:
    if options is None:
        return None
    at = raw.location(("acls",), at_key=True) or Location(raw.file)
    default = AclDeclaration((), at)
    return AclDeclaration(
        principals=tuple(options["principals"]),
        at=at,
        hosts=tuple(options.get("hosts", default.hosts)),
        internal_topics=InternalTopicAcls(options.get("internalTopics", default.internal_topics)),
        reads=tuple(options.get("reads", ())),
        writes=tuple(options.get("writes", ())),
    )


def _build_leftovers(raw: RawDocument, options: Options) -> Leftovers:
    return Leftovers(
        retire=tuple(options.get("retire", ())),
        delete=tuple(options.get("delete", ())),
        keep=tuple(options.get("keep", ())),
        at=raw.location(("leftovers",), at_key=True) if options else None,
    )


def _read_protocol(options: Options) -> Protocol:
    """Return `protocol`, else the config `group.protocol`. The compiler reports invalid values."""
    configured = trim_text(read_config(options.get("config")).get("group.protocol", "")).lower()
    word = options.get("protocol", configured)
    return Protocol(word) if word in set(Protocol) else Protocol.CLASSIC


def _build_setup(options: Options) -> Setup:
    default = Setup()
    return Setup(
        if_incomplete=options.get("ifIncomplete", default.if_incomplete),
        adopt=options.get("adopt", default.adopt),
        reinitialize=options.get("reinitialize", default.reinitialize),
        take_over=options.get("takeOver", default.take_over),
        timeout_ms=parse_duration(options.get("timeout", default.timeout_ms)),
        allow_unsafe_expansion=options.get("allowUnsafeExpansion", default.allow_unsafe_expansion),
        adopt_topics=tuple(options.get("adoptTopics", default.adopt_topics)),
        allow_id_overlap=options.get("allowIdOverlap", default.allow_id_overlap),
    )


def _build_sink(topic: str, options: Options) -> Sink:
    partitions = options.get("partitions", "follow")
    return Sink(
        topic,
        partitions=None if partitions == "follow" else partitions,
        config=read_topic_config(options.get("config")),
        replication_factor=options.get("replicationFactor"),
    )


class _Steps:
    """Builds steps, and follows values and positions together: a lookup of each path takes too long."""

    def __init__(self, file: str) -> None:
        self._file = file

    def steps(
        self, data: list[dict[str, Any]], position: Position, path: tuple[PathPart, ...]
    ) -> tuple[Step, ...]:
        return tuple(
            self._step(step, position.child(index), (*path, index)) for index, step in enumerate(data)
        )

    def _step(self, data: dict[str, Any], position: Position, path: tuple[PathPart, ...]) -> Step:
        ((name, given),) = data.items()
        options = complete_options(given)
        inner, path = position.child(name), (*path, name)
        operator = self._split(options, inner, path) if name == "split" else BUILDERS[name](options)
        at = Location(self._file, inner.key_line, inner.key_column, json_pointer(path))
        return Step(operator, at, input=options.get("from"), alias=options.get("as"))

    def _split(self, options: Options, position: Position, path: tuple[PathPart, ...]) -> Split:
        inner = position.child("branches")
        branches = tuple(
            self._branch(branch, inner.child(index), (*path, "branches", index))
            for index, branch in enumerate(options.get("branches", ()))
        )
        default = options.get("default", False)
        rest = None
        if default is not False:
            rest = self._branch(
                {} if default is True else default, position.child("default"), (*path, "default")
            )
        return Split(options.get("name"), branches, rest)

    def _branch(self, given: Options, position: Position, path: tuple[PathPart, ...]) -> Branch:
        options = complete_options(given)
        return Branch(
            name=options.get("name"),
            alias=options.get("as"),
            where=options.get("where"),
            then=self.steps(options.get("then", []), position.child("then"), (*path, "then")),
        )
