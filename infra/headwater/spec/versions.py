"""The version of Kafka Streams of a document: whether it is supported, and configs that it does not have."""

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.compiler.configs.table import Owner, find_config, find_period, split_key
from headwater.compiler.streams_config import OLD_GUARANTEES
from headwater.compiler.version_differences import (
    NO_OLD_GUARANTEES,
    PATCHED_CONFIGS,
    STREAMS_PROTOCOL,
    has_config,
)
from headwater.model.problems import Problem, ProblemCode, Severity, shorten_text
from headwater.model.topology import Protocol
from headwater.model.versions import (
    DEFAULT_VERSION,
    OLDER,
    SUPPORTED,
    SUPPORTED_RELEASES,
    KafkaStreamsVersion,
    is_older_than_known,
    read_any_version,
    read_version,
    release_start,
)
from headwater.spec.locations import RawDocument
from headwater.spec.phrases import join_with_or
from headwater.spec.scalars import config_text

_PATH = ("application", "kafkaStreams")
_GROUP_PROTOCOL = "group.protocol"
_GUARANTEE = "processing.guarantee"


def version_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return problems of an unsupported version, or of each config that the version does not have.

    A later version is handled as the latest known one, with a warning. Texts and topics of a running
    application are known whatever version made them, so an older version is only a warning there.
    """
    application = raw.section("application")
    if not isinstance(application, dict) or not is_version(application.get("kafkaStreams")):
        return ()
    version = declared_version(application)
    has_calls = "topology" in raw.data
    text = "" if application.get("kafkaStreams") is None else config_text(application["kafkaStreams"])
    if version is None or (has_calls and not version.is_supported and not version.is_newer):
        return (_unsupported_version(raw, text, version),)
    return (
        *_later_patch(raw, text, version),
        *(() if version.is_supported else (_approximate_version(raw, version, has_calls=has_calls),)),
        *_missing_protocol(raw, application, version),
        *_missing_configs(raw, application, version),
        *_removed_guarantee(raw, application, version),
    )


def declared_version(application: Mapping[str, Any]) -> KafkaStreamsVersion | None:
    """Return the version of a document's `application`, None if it is not known."""
    given = application.get("kafkaStreams")
    if given is None:
        return DEFAULT_VERSION
    text = config_text(given)
    return read_version(text) or read_any_version(text)


def is_version(given: object) -> bool:
    """Return whether the schema accepts the value, or none is given."""
    return given is None or (isinstance(given, str | int | float) and not isinstance(given, bool))


def _unsupported_version(raw: RawDocument, found: str, version: KafkaStreamsVersion | None) -> Problem:
    oldest, newest = SUPPORTED[0], SUPPORTED[-1]
    texts = f"Texts of {OLDER[0].release} and later are imported: `headwater import --describe`."
    if version is not None or is_older_than_known(found):
        why = (
            f"Headwater knows the calls of Kafka Streams {oldest.release} to {newest.release}. An older "
            "version may name and configure internal topics differently."
        )
        fix = (
            f"Replace the calls by the text of `Topology#describe()`. {texts}"
            if version is not None
            else f"Upgrade the application to {OLDER[0].release} or later first. {texts}"
        )
    else:
        why = (
            "Names and settings of internal topics can differ between versions. Headwater computes them only "
            "for versions with which it was compared."
        )
        fix = (
            f'Set `kafkaStreams` to the release that the application runs, such as `"{newest.release}"`. A '
            "release without a patch level is its latest known patch."
        )
    return Problem(
        code=ProblemCode.UNSUPPORTED_VERSION,
        summary=f"Kafka Streams {shorten_text(found)} is not supported.",
        expected=join_with_or([f"`{release}`" for release in SUPPORTED_RELEASES]),
        found=f"`{shorten_text(found)}`",
        why=why,
        fix=fix,
        location=raw.location(_PATH),
    )


def _later_patch(raw: RawDocument, text: str, version: KafkaStreamsVersion) -> Iterator[Problem]:
    """Yield a warning about a patch that is later than the known ones of its release."""
    if not version.is_supported or not text or read_version(text) is not None:
        return
    yield Problem(
        code=ProblemCode.UNSUPPORTED_VERSION,
        summary=f"Kafka Streams {shorten_text(text)} is later than the latest patch that Headwater knows: "
        f"it is handled as {version}.",
        expected=f"a patch up to {version}",
        found=f"`{shorten_text(text)}`",
        why="What a later patch does differently is not known. Most patches change no internal topics.",
        fix="Keep it if the plan shows no change that you do not expect. "
        f'`kafkaStreams: "{version.release}"` names the latest known patch, without this warning.',
        location=raw.location(_PATH),
        severity=Severity.WARNING,
    )


def _approximate_version(raw: RawDocument, version: KafkaStreamsVersion, *, has_calls: bool) -> Problem:
    oldest, newest = SUPPORTED[0], SUPPORTED[-1]
    if version.is_newer:
        summary = (
            f"Kafka Streams {version} is later than the newest release that Headwater knows: it is handled "
            f"as {newest.release}."
        )
        why = "What the later release does differently is not known."
        fix = (
            "Compare the output of `headwater describe` with the text that the application prints: if they "
            "are equal, names of topics and stores are. Upgrade Headwater when it supports the release."
            if has_calls
            else "Check the plan against the topics of the application, and upgrade Headwater when it "
            "supports the release."
        )
    else:
        summary = (
            f"Kafka Streams {version} was compared in part: names, settings and co-partitioning of internal "
            f"topics are known, partition counts are computed as for {oldest.release}."
        )
        why = (
            f"Releases before {oldest.release} are only known from their texts and topics. docs/versions.md "
            "lists what differs."
        )
        fix = "Import with `--bootstrap-server`: it reports each difference from the topics of the cluster."
    return Problem(
        code=ProblemCode.UNSUPPORTED_VERSION,
        summary=summary,
        expected=f"{oldest.release} to {newest.release}",
        found=str(version),
        why=why,
        fix=fix,
        location=raw.location(_PATH),
        severity=Severity.WARNING,
    )


def _missing_protocol(
    raw: RawDocument, application: Mapping[str, Any], version: KafkaStreamsVersion
) -> Iterator[Problem]:
    if application.get("protocol") == Protocol.STREAMS and not STREAMS_PROTOCOL.is_in(version):
        yield Problem(
            code=ProblemCode.NOT_IN_VERSION,
            summary=f"The streams protocol exists since Kafka Streams {STREAMS_PROTOCOL.since_text}.",
            expected="`classic`",
            found=f"`streams`, with Kafka Streams {version}",
            why="The application uses the classic protocol, which decides partition counts differently.",
            fix="Set `protocol: classic`, or `kafkaStreams` to the version that the application runs.",
            location=raw.location(("application", "protocol")),
        )


def reports_value(key: str, text: str, version: KafkaStreamsVersion) -> bool:
    """Return whether the value of a config is refused because of the version, which has its own text."""
    if key == _GROUP_PROTOCOL:
        return not has_config(key, version)
    return key == _GUARANTEE and text in OLD_GUARANTEES and NO_OLD_GUARANTEES.is_in(version)


def _removed_guarantee(
    raw: RawDocument, application: Mapping[str, Any], version: KafkaStreamsVersion
) -> Iterator[Problem]:
    config = application.get("config")
    value = config.get(_GUARANTEE) if isinstance(config, dict) else None
    if value in OLD_GUARANTEES and NO_OLD_GUARANTEES.is_in(version):
        yield Problem(
            code=ProblemCode.NOT_IN_VERSION,
            summary=f"`{value}` exists only before Kafka Streams {NO_OLD_GUARANTEES.since_text}.",
            expected="`exactly_once_v2` or `at_least_once`",
            found=f"`{value}`, with Kafka Streams {version}",
            why="Kafka Streams throws a ConfigException: the application does not start.",
            fix="Set `exactly_once_v2`, or `kafkaStreams` to the version that the application runs.",
            location=raw.location(("application", "config", _GUARANTEE)),
        )


def _missing_configs(
    raw: RawDocument, application: Mapping[str, Any], version: KafkaStreamsVersion
) -> Iterator[Problem]:
    config = application.get("config")
    for key, value in config.items() if isinstance(config, dict) else ():
        period = _missing_period(key, version)
        if period is None:
            continue
        is_protocol = key == _GROUP_PROTOCOL and str(value).strip().lower() == Protocol.STREAMS
        yield Problem(
            code=ProblemCode.NOT_IN_VERSION,
            summary=f"`{shorten_text(key)}` exists {period}.",
            expected=f"a config of Kafka Streams {version}",
            found=f"`{shorten_text(key)}`",
            why="The application uses the classic protocol, which decides partition counts differently."
            if is_protocol
            else f"Kafka Streams {version} ignores it.",
            fix="Remove it, or set `kafkaStreams` to the version that the application runs.",
            location=raw.location(("application", "config", key), at_key=True),
            severity=Severity.ERROR if is_protocol else Severity.WARNING,
        )


def _missing_period(key: str, version: KafkaStreamsVersion) -> str | None:
    """Return when a config exists if the version does not have it: `since Kafka Streams 4.2.0`."""
    if key in PATCHED_CONFIGS:
        change = PATCHED_CONFIGS[key]
        return None if change.is_in(version) else f"since Kafka Streams {change.since_text}"
    name, owners = split_key(key)
    if key == _GROUP_PROTOCOL:  # consumers have an older config of this name
        owners = (Owner.STREAMS,)
    period = find_period(owners, name)
    if period is None or any(find_config(owner, name, version) for owner in owners):
        return None
    if period.since is not None and version < release_start(period.since):
        return f"since Kafka Streams {period.since}.0"
    return f"only up to Kafka Streams {period.until}"
