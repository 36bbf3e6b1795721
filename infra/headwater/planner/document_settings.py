"""The settings of a document that change how an application behaves, although no topic changes.

They are part of the setup record, so that a run shows which of them have changed since the last one. What a
run does to topics and ACLs is in its actions. The options in `setup` are not recorded: they apply to one run.

A record is not secret: people read it who may not read the document. So it has only the values of configs
that are known, and no credentials of URLs. Of any other config, and of the topology with its expressions, it
has a digest, which says whether the value is the same. Of passwords, and of unknown configs with the name of
a secret, it has nothing. It has no digest of credentials either: several short digests of one password, from
other applications and keys, together identify it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs

from headwater.compiler.configs.table import is_public, known_keys
from headwater.model.compiled import CompiledApplication
from headwater.model.operators import Branch, Split, Step
from headwater.model.problems import Location, Problem
from headwater.model.records import SetupRecord
from headwater.model.topology import TopologyDocument, UnknownDetails

CONTENT_VERSION = 1
"""Raise it if `topology_content` returns another text for the same document."""
VERSION = "kafkaStreams"
PROTOCOL = "protocol"
PROCESSORS = "processors"
TOPOLOGY = "topology"
UNSET = "unset"
CHANGED = "changed"
AGAIN = " (again)"
SET = "set"
_OWN = (VERSION, PROTOCOL, PROCESSORS)
_WITHOUT_VALUES = (CHANGED, f"{UNSET} → {SET}", f"{SET} → {UNSET}")
_DIGEST_DIGITS = 16
_TOPOLOGY_PREFIX = f"{CONTENT_VERSION}:sha256:"
_DIGEST = re.compile(rf"(?:\d+:)?sha256:[0-9a-f]{{{_DIGEST_DIGITS}}}")
_SECRET = re.compile(
    r"pass(word|wd|phrase|code)|pwd|secret|token|jaas|cred|auth|private|signature|webhook|user\.?info"
    r"|api\.?key|access\.?key|(^|[._-])(key|keys|pass|pin|dsn)($|[._-])",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"//.*@", re.DOTALL)
_QUERY = re.compile(r"(://[^?#]*)[?#].*", re.DOTALL)

_NO_CONTENT = (Location, Problem, UnknownDetails)
_EXPRESSIONS = frozenset(
    {
        *("where", "key", "value", "each", "add", "remove", "init", "merge", "foreign_key", "timestamp"),
        *("topic_expression", "extractor"),
    }
)
"""The fields of calls that are expressions."""

_COMMENT = re.compile(r"--|/\*")
_RAW = re.compile(r"""\br['"]""", re.IGNORECASE)
_QUOTED = r"""'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|`[^`]*`?"""
_PART = re.compile(rf"{_QUOTED}|\s+|\w+|.", re.DOTALL)
_BRACKETS = "()[],"


@attrs.frozen
class SettingChange:
    """A setting that differs from the last run; None = not set. An unknown config has digests as values."""

    key: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """Return the change of the value, as `automatic → manual`; `changed` if values are not shown."""
        if is_digest(self.before) and is_digest(self.after):
            return CHANGED
        return " → ".join(map(_value_text, (self.before, self.after)))


def is_digest(value: str | None) -> bool:
    """Return whether a recorded text is the digest of a value that is not recorded."""
    return value is not None and _DIGEST.fullmatch(value) is not None


def document_settings(compiled: CompiledApplication) -> Mapping[str, str]:
    """Return the recorded settings, none is a secret.

    They are the keys of `config`, `protocol`, `processors`, and a digest of the topology: its calls with
    their expressions, its described text, or what the code has exported.
    """
    application = compiled.application
    processors = {} if application.processors is None else {PROCESSORS: str(application.processors)}
    content = topology_content(compiled.document)
    digest = f"{_TOPOLOGY_PREFIX}{_digest_of(application.id, TOPOLOGY, content)}"
    topology = {TOPOLOGY: digest} if content else {}
    configs = _redact_settings(application.id, application.config)
    return {**configs, PROTOCOL: application.protocol.value, **processors, **topology}


def _redact_settings(application_id: str, settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return the part of `settings` that a record may have; without the keys of which it has nothing."""
    redacted = ((key, _recorded_config(application_id, key, value)) for key, value in settings.items())
    return {key: value for key, value in redacted if value is not None}


def read_settings(application_id: str, recorded: Mapping[str, str]) -> Mapping[str, str]:
    """Return recorded settings, redacted: an earlier version may have recorded more than it should."""
    own = {key: value for key, value in recorded.items() if key in _OWN or is_digest(value)}
    return {**_redact_settings(application_id, recorded), **own}


def change_texts(changes: Sequence[SettingChange], latest: Mapping[str, str]) -> Mapping[str, str]:
    """Return setting → text of its change; none is its text in `latest`, from the latest run with changes.

    Pulumi shows a difference only if a text differs. It is the same again if that run failed before it
    recorded the setting, or if the values are not shown. Without changes, the texts of `latest` stay.
    """
    if not changes:
        return latest
    return {
        change.key: f"{change.text}{AGAIN}" if latest.get(change.key) == change.text else change.text
        for change in changes
    }


def read_texts(recorded: Mapping[str, str]) -> Mapping[str, str]:
    """Return the recorded texts of changes, without values that an earlier version should not have shown."""
    return {key: text if _may_be_shown(key, text) else CHANGED for key, text in recorded.items()}


def setting_changes(compiled: CompiledApplication, record: SetupRecord | None) -> tuple[SettingChange, ...]:
    """Return the settings that differ from the record, by key.

    A record without settings was written by a version of Headwater that recorded none: nothing is known. The
    same holds for a record without a topology, or with a digest of another version of its content.
    """
    if record is None or record.unfinished:
        return ()
    return tuple(sorted(_find_changes(compiled, record), key=lambda change: change.key))


def has_comparable_topology(compiled: CompiledApplication, record: SetupRecord) -> bool:
    """Return whether the record shows if the topology was edited; an observed document has none to edit."""
    if not topology_content(compiled.document):
        return bool(record.settings)
    return record.settings.get(TOPOLOGY, "").startswith(_TOPOLOGY_PREFIX)


def _find_changes(compiled: CompiledApplication, record: SetupRecord) -> Iterator[SettingChange]:
    application = compiled.application
    version = application.kafka_streams
    release = [str(version.major), str(version.minor)]
    # The patch is the newest that Headwater supports, whatever the document says.
    if application.names_version and record.kafka_streams and record.kafka_streams.split(".")[:2] != release:
        yield SettingChange(VERSION, record.kafka_streams, str(version))
    if not record.settings:
        return
    before, after = record.settings, document_settings(compiled)
    for key in before.keys() | after.keys():
        is_known = key != TOPOLOGY or before.get(key, "").startswith(_TOPOLOGY_PREFIX)
        if is_known and before.get(key) != after.get(key):
            yield SettingChange(key, before.get(key), after.get(key))


def _may_be_shown(key: str, text: str) -> bool:
    return key in _OWN or is_public(key) or text.removesuffix(AGAIN) in _WITHOUT_VALUES


def _recorded_config(application_id: str, key: str, value: str) -> str | None:
    """Return what a record has of a config, None if it has nothing."""
    shown = redact_url(value)
    if is_public(key):
        return shown
    if key in known_keys() or _SECRET.search(key):
        return None
    return f"sha256:{_digest_of(application_id, key, shown)}"


def redact_url(value: str) -> str:
    """Return the value without the credentials, query and fragment of a URL: each may contain a secret."""
    return _QUERY.sub(r"\1", _USER_INFO.sub("//", value))


def _digest_of(application_id: str, key: str, value: str) -> str:
    """Return a digest that differs for each application and key, so equal values are not recognized."""
    text = json.dumps([application_id, key, value], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


def _value_text(value: str | None) -> str:
    if value is None:
        return UNSET
    return SET if is_digest(value) else value


def topology_content(document: TopologyDocument | None) -> str:
    """Return the calls, the described nodes or the exported nodes of a document, empty if it has none.

    Locations in the file, defaults, the names of handles and white space in expressions have no part in it.
    """
    if document is None:
        return ""
    if document.steps:
        return json.dumps(_Calls().contents(document.steps), ensure_ascii=True)
    topology = document.described or document.exported
    return json.dumps(_read_content(topology), ensure_ascii=True) if topology else ""


def call_options(step: Step) -> Mapping[str, Any]:
    """Return the options of a call that are set, by field; without handles, and branches of `split`."""
    if isinstance(step.operator, Split):
        return {}
    return {name: content for name, content in _read_fields(step.operator, {}) if name != "other"}


class _Calls:
    """The contents of calls. A result is named by the position of its call, whatever its handle is."""

    def __init__(self) -> None:
        self._positions: dict[str, str] = {}

    def contents(self, steps: Iterable[Step], within: str = "", current: str = "") -> list[Any]:
        """Return the contents of calls in the branch `within`; the first is a call on `current`."""
        contents = []
        for number, step in enumerate(steps):
            on = current if step.input is None else self._position(step.input)
            current = f"{within}{number}"
            contents.append([on, self._operator(step, current)])
            if step.alias is not None:
                self._positions[step.alias] = current
        return contents

    def _operator(self, step: Step, position: str) -> list[Any]:
        operator = step.operator
        if isinstance(operator, Split):
            branches = [
                self._branch(branch, f"{position}.{number}")
                for number, branch in enumerate((*operator.branches, operator.default))
                if branch is not None
            ]
            return ["Split", operator.name, operator.default is not None, branches]
        other = getattr(operator, "other", None)
        return [*_read_content(operator, {"other": other and self._position(other)})]

    def _branch(self, branch: Branch, position: str) -> list[Any]:
        contents = self.contents(branch.then, f"{position}.", position)
        if branch.alias is not None:
            self._positions[branch.alias] = f"{position}.{len(contents) - 1}" if contents else position
        return [branch.name, branch.where and normalize_expression(branch.where), contents]

    def _position(self, handle: str) -> str:
        return self._positions.get(handle, handle)


def _read_content(value: object, replaced: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return a value as JSON; `replaced` are fields that have another value."""
    match value:
        case Enum():
            return value.name
        case None | str() | int() | float():
            return value
        case Mapping():
            return sorted([str(key), _read_content(each)] for key, each in value.items())
        case frozenset():
            return sorted(map(_read_content, value), key=json.dumps)
        case tuple() | list():
            return [_read_content(each) for each in _with_content(value)]
        case _:
            return [type(value).__name__, *_read_fields(value, replaced or {})]


def _read_fields(value: object, replaced: Mapping[str, object]) -> list[Any]:
    """Return name and content of the fields that are set, so a field that a later version adds is ignored."""
    fields = []
    for field in attrs.fields(type(value)):  # type: ignore[arg-type]  # all values of a document are of attrs
        found = replaced.get(field.name, getattr(value, field.name))
        if isinstance(found, tuple):
            found = tuple(_with_content(found))
        elif isinstance(found, str) and field.name in _EXPRESSIONS:
            found = normalize_expression(found)
        is_set = found != field.default and found not in ((), {}, frozenset())
        if is_set and not isinstance(found, _NO_CONTENT):
            fields.append([field.name, _read_content(found)])
    return fields


def _with_content(values: Iterable[object]) -> Iterable[object]:
    return (each for each in values if not isinstance(each, _NO_CONTENT))


def normalize_expression(expression: str) -> str:
    """Return the expression with white space only where it separates words or operators.

    White space in quotes stays. An expression with a comment is returned as it is, because a line break ends
    a comment, and so is one with a raw string, which ends at other quotes.
    """
    if _RAW.search(expression):
        return expression
    parts = _PART.findall(expression.strip())
    if _COMMENT.search("".join(part for part in parts if not _is_quoted(part))):
        return expression
    kept = []
    for number, part in enumerate(parts):
        if not part.isspace():
            kept.append(part)
        elif _is_separator(parts[number - 1], parts[number + 1]):
            kept.append(" ")
    return "".join(kept)


def _is_quoted(part: str) -> bool:
    return part[0] in "'\"`"


def _is_separator(before: str, after: str) -> bool:
    """Return whether two parts without white space between them are, or may be, another text."""
    if before in _BRACKETS or after in _BRACKETS:
        return False
    return _is_word(before) == _is_word(after)


def _is_word(part: str) -> bool:
    return _is_quoted(part) or part[0].isalnum() or part[0] == "_"
