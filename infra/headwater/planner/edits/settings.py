"""Finds the settings of an application that were edited, and says what each of them decides."""

import re
from collections.abc import Iterator, Mapping

import attrs

from headwater.compiler.configs.table import is_public, known_keys
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Location
from headwater.model.records import SetupRecord
from headwater.model.topology import TopologyDocument
from headwater.planner.document_settings import (
    PROCESSORS,
    PROTOCOL,
    SET,
    TOPOLOGY,
    VERSION,
    is_digest,
    redact_url,
    setting_changes,
)
from headwater.planner.edits.values import SettingEdit
from headwater.planner.phrases import duration_phrase

OFFSET_RESET = (
    "It counts only for partitions without a valid committed offset: new topics and partitions, a new group, "
    "and offsets that have expired or whose records are deleted. All others continue at their committed "
    "offsets."
)
"""What another offset reset means for an application that has run."""
_IN_VERDICTS = "What it changes for stores and topics is in their verdicts."
_OF_NEW_TOPICS = (
    "Kafka Streams uses it only when it creates internal topics: topics that exist keep what they have."
)
_OF_TOPICS = (
    "Kafka Streams uses it only when it creates internal topics. `pulumi up` sets it for existing ones, too, "
    "unless `internal.topics.setup` is `manual`: `headwater plan` shows what changes. Kafka may then remove "
    "records."
)
_OF_CLUSTER = (
    "With the addresses of another cluster, the application finds none of its topics, state and offsets. "
    "Other addresses of the same cluster change nothing."
)
_RESTORED = "Instances find no local state there, and restore their stores from the changelogs."
_BY_CLIENT = "Kafka Streams sets it itself for this consumer, so it has no effect."
_CACHES = "It decides how many results are sent on before the last one of a key. Stores keep their state."
_GUARANTEE = "Topics, state and committed offsets stay. Results have the new guarantee after the restart."
_HANDLER = "It decides what happens to records and tasks that fail. Topics, state and committed offsets stay."
_NO_EFFECT = "No topic, state or committed offset depends on it: instances use it after their restart."
_OF_CODE = "Kafka Streams does not know it: what it changes is decided by the code that reads it."
_OF_SETUP = "It says what `pulumi up` may do to topics. Topics, state and committed offsets stay."
_OF_RUNS = "It applies to one run of `pulumi up`. The application does not read it."
_OWN: Mapping[str, str] = {
    "processors": "It decides the partition counts of internal topics, which are in their verdicts.",
    "renamedFrom": "It says which application before is compared with this one; it changes nothing else.",
    "clusterProfile": "It decides which settings of topics the cluster accepts. State and offsets stay.",
    "topics": "It is the declared topic: `headwater plan` shows what changes. State and offsets stay.",
    "acls": "They are permissions: `headwater plan` shows what changes. State and offsets stay.",
    "leftovers": "It says what happens to topics that no operator uses. State and offsets stay.",
    "setup": _OF_RUNS,
    "exported": "It is the name that the code gave to the topology; it begins no name of a topic.",
}
_IN_REPORT = (TOPOLOGY, VERSION, PROTOCOL)
_OF_CONFIGS: tuple[tuple[str, str], ...] = (
    (r"(restore|global)\.consumer\.auto\.offset\.reset", _BY_CLIENT),
    (r"((main\.)?consumer\.)?auto\.offset\.reset", OFFSET_RESET),
    (r"topic\..+", _OF_TOPICS),
    (r"replication\.factor", _OF_NEW_TOPICS),
    (
        r"((main\.|restore\.|global\.)?consumer\.|producer\.|admin\.)?bootstrap\.(servers|controllers)",
        _OF_CLUSTER,
    ),
    (r"windowstore\.changelog\.additional\.retention\.ms", _IN_VERDICTS),
    (
        r"topology\.optimization|upgrade\.from|__.+__|ensure\.explicit\.internal\.resource\.naming",
        _IN_VERDICTS,
    ),
    (r"default\..*serde.*|windowed\.inner\.class\.serde|window\.size\.ms", _IN_VERDICTS),
    (r"(producer\.)?(partitioner\.class|static\.partitioner\..+)|default\.client\.supplier", _IN_VERDICTS),
    (r"default\.dsl\.store|dsl\.store\..+", _IN_VERDICTS),
    (
        r"default\.timestamp\.extractor",
        "Records from now on get other timestamps. Stores keep the former ones.",
    ),
    (r"internal\.topics\.setup|partition\.autoscaling\..+", _OF_SETUP),
    (r"state\.dir", _RESTORED),
    (r"processing\.guarantee", _GUARANTEE),
    (r"commit\.interval\.ms|cache\.max\.bytes\.buffering|statestore\.cache\.max\.bytes", _CACHES),
    (r".*exception\.handler.*|errors\.dead\.letter\.queue\..+", _HANDLER),
)
"""Pattern of the whole key → what the config decides."""


def edited_settings(before: TopologyDocument, after: TopologyDocument) -> tuple[SettingEdit, ...]:
    """Return the settings that differ, by key; id, version and group protocol are in the report itself.

    A text shows none of them, and code may set configs that its document does not have.
    """
    found: list[SettingEdit] = []
    if _has_settings(before) and _has_settings(after):
        found += _find_edits(_own_settings(before), _own_settings(after), after, is_own=True)
    if _has_config(before) and _has_config(after):
        found += _find_edits(_read_configs(before), _read_configs(after), after, is_own=False)
    return tuple(sorted(found, key=lambda edit: edit.key))


def _has_settings(document: TopologyDocument) -> bool:
    """Return whether a document is more than a text: it has calls, names the version or has any setting."""
    is_text = document.described is not None and not document.application.names_version
    return not is_text or bool(_read_configs(document) or _own_settings(document))


def _has_config(document: TopologyDocument) -> bool:
    return bool(_read_configs(document)) or (document.exported is None and _has_settings(document))


def _find_edits(
    old: Mapping[str, str], new: Mapping[str, str], after: TopologyDocument, *, is_own: bool
) -> Iterator[SettingEdit]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield SettingEdit(
                key=key,
                before=_show_value(key, old.get(key), is_own=is_own),
                after=_show_value(key, new.get(key), is_own=is_own),
                why=_explain_setting(key, is_own=is_own),
                location=after.application.locate_config(key),
            )


def settings_since_setup(compiled: CompiledApplication, record: SetupRecord) -> tuple[SettingEdit, ...]:
    """Return the recorded settings that differ, by key; a record has no values that may be secret."""
    application = compiled.application
    return tuple(
        SettingEdit(
            key=change.key,
            before=SET if is_digest(change.before) else change.before,
            after=SET if is_digest(change.after) else change.after,
            why=_explain_setting(change.key, is_own=change.key == PROCESSORS),
            location=application.locate_config(change.key),
        )
        for change in setting_changes(compiled, record)
        if change.key not in _IN_REPORT
    )


def _read_configs(document: TopologyDocument) -> Mapping[str, str]:
    """Return the keys of `config` that are set, with their values."""
    absent = (f"topic.{name}" for name in document.application.absent_topic_configs)
    found = {**document.application.config, **dict.fromkeys(absent, "null")}
    return {key: value for key, value in found.items() if value}


def _own_settings(document: TopologyDocument) -> Mapping[str, str]:
    """Return the other settings of a document that are set, each with its value as a text."""
    return {key: value for key, value in _find_own_settings(document) if value}


def _find_own_settings(document: TopologyDocument) -> Iterator[tuple[str, str]]:
    application = document.application
    yield PROCESSORS, _as_text(application.processors)
    yield "renamedFrom", _as_text(application.renamed_from)
    profile = application.cluster_profile
    if profile is not None and not application.is_profile_recognized:
        yield "clusterProfile", profile.name
    yield from _read_fields("setup", application.setup)
    yield from _read_fields("acls", application.acls)
    yield from _read_fields("leftovers", application.leftovers)
    for sink in document.sinks:
        yield (
            f"topics.{sink.topic}",
            ", ".join(f"{name} {text}" for name, text in _read_fields("", sink) if text),
        )
    if document.exported is not None:
        yield "exported.name", _as_text(document.exported.nodes.name)


def _read_fields(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the fields of a value that differ from their default, without locations."""
    if value is None:
        return
    for field in attrs.fields(type(value)):  # type: ignore[arg-type]  # all values of a document are of attrs
        part = getattr(value, field.name)
        if not isinstance(part, Location) and field.eq and part != field.default:
            name = camel_case(field.name.removesuffix("_ms"))
            text = duration_phrase(part) if field.name.endswith("_ms") else _as_text(part)
            yield f"{key}.{name}" if key else name, text


def camel_case(name: str) -> str:
    """Return the key of a document for the name of a field."""
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={each}" for key, each in sorted(value.items()))
    if isinstance(value, (tuple, frozenset, list)):
        return ", ".join(sorted(map(str, value)))
    return "" if value is None else str(value)


def _show_value(key: str, value: str | None, *, is_own: bool) -> str | None:
    """Return the value as a report may show it: a config can be the password of a client.

    A config of a user may have any name, also the name of a setting of documents.
    """
    if value is None:
        return None
    if is_own or key.startswith("topic.") or is_public(key):
        return redact_url(value)
    return SET


def _explain_setting(key: str, *, is_own: bool) -> str:
    if is_own:
        return _OWN[key.partition(".")[0]]
    found = next((why for pattern, why in _OF_CONFIGS if re.fullmatch(pattern, key)), None)
    if found is not None:
        return found
    return _NO_EFFECT if key in known_keys() else _OF_CODE
