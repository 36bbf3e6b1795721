"""PURE. Lines of the journal as JSON, and which of them count.

Readers take what they know and leave what they do not, so that agents of different versions can share a
journal. Lines stand in the order of the log; the first of a term says only that the term begins.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from spark_jobs.agent.state import ExpansionEntry, Stage

_VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class JournalLine:
    """One line: an expansion at some stage, or (`application` empty) the beginning of a term.

    `stage` is a text: a later version may know more of them than `Stage`.
    """

    term: int
    client_id: str
    host: str
    wall_ms: int
    application: str = ""
    number: int = 0
    stage: str = ""
    before: Mapping[str, int] = attrs.field(factory=dict)
    after: Mapping[str, int] = attrs.field(factory=dict)
    sources_before: Mapping[str, int] = attrs.field(factory=dict)
    sources_after: Mapping[str, int] = attrs.field(factory=dict)
    done: tuple[str, ...] = ()
    reason: str = ""

    @property
    def at(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.wall_ms)

    @property
    def event(self) -> str:
        """The id of the expansion that it is about."""
        return f"{self.application}#{self.number}"

    @classmethod
    def of(cls, entry: ExpansionEntry, term: int, host: str) -> "JournalLine":
        fields = attrs.asdict(entry, recurse=False)
        return cls(term=term, host=host, **{**fields, "stage": entry.stage.value})

    def entry(self) -> ExpansionEntry | None:
        """Return the expansion, None for the beginning of a term and for a stage of a later version."""
        if not self.application or self.stage not in list(Stage):
            return None
        names = [field.name for field in attrs.fields(ExpansionEntry)]
        return ExpansionEntry(**{name: getattr(self, name) for name in names} | {"stage": Stage(self.stage)})


def key_of(line: JournalLine, nonce: str) -> str:
    """Return a key that no other record has: what is compacted by keys then stays as it is."""
    return "/".join((line.application, str(line.number), line.stage, str(line.term), nonce))


def encode(line: JournalLine) -> bytes:
    """Return the line as JSON in UTF-8; the beginning of a term has no application and no expansion."""
    document = {
        "version": _VERSION,
        "term": line.term,
        "at": line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "clientId": line.client_id,
        "host": line.host,
    }
    if line.application:
        document |= {
            "application": line.application,
            "number": line.number,
            "stage": line.stage,
            "before": dict(line.before),
            "after": dict(line.after),
            "sourcesBefore": dict(line.sources_before),
            "sourcesAfter": dict(line.sources_after),
            "done": list(line.done),
            "reason": line.reason,
        }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def decode(value: bytes | None) -> JournalLine | None:
    """Return the line, None for what is none (somebody else's record, a tombstone)."""
    try:
        told = json.loads(value or b"")
        return JournalLine(
            term=int(told["term"]),
            client_id=str(told.get("clientId", "")),
            host=str(told.get("host", "")),
            wall_ms=(datetime.fromisoformat(told["at"]) - _EPOCH) // timedelta(milliseconds=1),
            application=str(told.get("application", "")),
            number=int(told.get("number", 0)),
            stage=str(told.get("stage", "")),
            before=_counts(told, "before"),
            after=_counts(told, "after"),
            sources_before=_counts(told, "sourcesBefore"),
            sources_after=_counts(told, "sourcesAfter"),
            done=tuple(str(topic) for topic in told.get("done", ())),
            reason=str(told.get("reason", "")),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _counts(told: Mapping[str, Any], name: str) -> Mapping[str, int]:
    return {str(topic): int(count) for topic, count in told.get(name, {}).items()}


def that_count(lines: Iterable[JournalLine]) -> Iterator[JournalLine]:
    """Yield the lines of expansions, each once, without those that an earlier leader wrote too late.

    A line counts if no newer term began before it in the log: a leader that was paused and did not know that
    it had been replaced cannot change what the new one has read.
    """
    newest = 0
    seen: set[tuple[str, int, str, int]] = set()
    for line in lines:
        if line.term < newest:
            continue
        newest = line.term
        identity = (line.application, line.number, line.stage, line.term)
        if line.application and identity not in seen:
            seen.add(identity)
            yield line


def furthest(lines: Iterable[JournalLine]) -> Mapping[str, ExpansionEntry]:
    """Return application → the last entry of those with the highest number and, in it, the furthest stage."""
    found: dict[str, ExpansionEntry] = {}
    for line in that_count(lines):
        entry = line.entry()
        known = found.get(line.application)
        if entry is not None and (known is None or _rank(entry) >= _rank(known)):
            found[line.application] = entry
    return found


def _rank(entry: ExpansionEntry) -> tuple[int, int]:
    order = 2 if entry.stage.is_final else int(entry.stage is Stage.EXPANDED)
    return entry.number, order
