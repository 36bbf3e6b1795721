"""The version of Kafka Streams of a document: whether it is supported, and configs that it does not have."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.compiler.configs.table import Owner, find_config, find_period, split_key
from infra.compiler.streams_config import OLD_GUARANTEES
from infra.compiler.version_differences import (
    NO_OLD_GUARANTEES,
    PATCHED_CONFIGS,
    STREAMS_PROTOCOL,
    has_config,
)
from infra.model.problems import Problem, ProblemCode, Severity
from infra.model.topology import Protocol
from infra.model.versions import (
    DEFAULT_VERSION,
    SUPPORTED,
    SUPPORTED_RELEASES,
    KafkaStreamsVersion,
    is_older_than_supported,
    read_version,
    release_start,
)
from infra.spec.locations import RawDocument
from infra.spec.phrases import either, shorten
from infra.spec.scalars import config_text

_PATH = ("application", "kafkaStreams")
_GROUP_PROTOCOL = "group.protocol"
_GUARANTEE = "processing.guarantee"


def version_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return a problem for an unsupported version, or for each config that the version does not have."""
    application = raw.data.get("application") if isinstance(raw.data, dict) else None
    if not isinstance(application, dict) or not is_version(application.get("kafkaStreams")):
        return ()
    version = declared_version(application)
    if version is None:
        return (_unsupported(raw, config_text(application["kafkaStreams"])),)
    return (
        *_missing_protocol(raw, application, version),
        *_missing_configs(raw, application, version),
        *_removed_guarantee(raw, application, version),
    )


def declared_version(application: Mapping[str, Any]) -> KafkaStreamsVersion | None:
    """Return the version of a document's `application`, None if it is not supported."""
    given = application.get("kafkaStreams")
    return DEFAULT_VERSION if given is None else read_version(config_text(given))


def is_version(given: object) -> bool:
    """Return whether the schema accepts the value, or none is given."""
    return given is None or (isinstance(given, str | int | float) and not isinstance(given, bool))


def _unsupported(raw: RawDocument, found: str) -> Problem:
    oldest, newest = SUPPORTED[0], SUPPORTED[-1]
    why = (
        f"Headwater knows Kafka Streams {oldest.release} to {newest.release}. An older version may name and "
        "configure internal topics differently."
        if is_older_than_supported(found)
        else "Names and settings of internal topics can differ between versions. Headwater computes them "
        "only for versions with which it was compared."
    )
    return Problem(
        code=ProblemCode.UNSUPPORTED_VERSION,
        summary=f"Kafka Streams {shorten(found)} is not supported.",
        expected=either([f"`{release}`" for release in SUPPORTED_RELEASES]),
        found=f"`{shorten(found)}`",
        why=why,
        fix="Set `kafkaStreams` to the release that the application runs, such as "
        f'`"{newest.release}"`. A release without a patch level is its latest known patch.',
        location=raw.location(_PATH),
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
            summary=f"`{shorten(key)}` exists {period}.",
            expected=f"a config of Kafka Streams {version}",
            found=f"`{shorten(key)}`",
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
