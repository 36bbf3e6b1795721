"""The lines of the journal: their JSON, which of them are valid, and the expansions that they describe.

Readers ignore keys that they do not know, so that agents of different versions can share a journal. Lines are
in the order of the log; the first line of a term only begins the term.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from headwater.model.expansions import ExpansionEntry, Stage
from headwater.model.untrusted import check_mapping, check_text, check_texts, check_whole, json_object

_VERSION = 1
_LARGEST_TERM = 2**40
"""Far more than the seconds since the epoch with which terms begin: no agent writes such a term."""
_LARGEST_NUMBER = 2**31 - 1
_LATEST_VERSION = 2**31 - 1
"""Later versions may add keys: their lines are read without them."""
_LONGEST_REASON = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class JournalLine:
    """One line: a stage of an expansion, or (`application` empty) the beginning of a term.

    `stage` is a text, because a later version may have more stages than `Stage`.
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
        """Return the id of the expansion."""
        return f"{self.application}#{self.number}"

    @classmethod
    def from_entry(cls, entry: ExpansionEntry, term: int, host: str) -> "JournalLine":
        fields = attrs.asdict(entry, recurse=False)
        return cls(term=term, host=host, **{**fields, "stage": entry.stage.value})

    def entry(self) -> ExpansionEntry | None:
        """Return the expansion, None for the beginning of a term and for a stage of a later version."""
        if not self.application or self.stage not in list(Stage):
            return None
        names = [field.name for field in attrs.fields(ExpansionEntry)]
        return ExpansionEntry(**{name: getattr(self, name) for name in names} | {"stage": Stage(self.stage)})


def key_of(line: JournalLine, nonce: str) -> str:
    """Return a key that no other record has, so that compaction removes no record."""
    return "/".join((line.application, str(line.number), line.stage, str(line.term), nonce))


def encode_line(line: JournalLine) -> bytes:
    """Return the line as JSON in UTF-8; the beginning of a term has no keys of an expansion."""
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


def decode_line(value: bytes | None) -> JournalLine | None:
    """Return the line, None for a record of another format and for a tombstone.

    A record that no agent has written must not end the agents that read it: neither here, nor when they
    write it again or print its time.
    """
    try:
        document = json_object(value or b"", _LATEST_VERSION, "version")
        line = JournalLine(
            term=check_whole(document.get("term"), _LARGEST_TERM),
            client_id=check_text(document.get("clientId", "")),
            host=check_text(document.get("host", "")),
            wall_ms=(datetime.fromisoformat(check_text(document.get("at"))) - _EPOCH)
            // timedelta(milliseconds=1),
            application=check_text(document.get("application", "")),
            number=check_whole(document.get("number", 0), _LARGEST_NUMBER),
            stage=check_text(document.get("stage", "")),
            before=_read_counts(document, "before"),
            after=_read_counts(document, "after"),
            sources_before=_read_counts(document, "sourcesBefore"),
            sources_after=_read_counts(document, "sourcesAfter"),
            done=check_texts(document.get("done", [])),
            reason=check_text(document.get("reason", ""), _LONGEST_REASON),
        )
        encode_line(line)
    except (ValueError, TypeError, OverflowError):
        return None
    return line


def _read_counts(document: Mapping[str, Any], name: str) -> Mapping[str, int]:
    return {
        topic: check_whole(count, _LARGEST_NUMBER)
        for topic, count in check_mapping(document.get(name, {})).items()
    }


def valid_lines(lines: Iterable[JournalLine]) -> Iterator[JournalLine]:
    """Yield the lines of expansions, each once, without those that a deposed leader wrote too late.

    A line is valid if no newer term began before it in the log: a paused leader that was replaced cannot
    change what the new leader has read.
    """
    newest = 0
    seen: set[tuple[str, int, str, int, int]] = set()
    for line in lines:
        if line.term < newest:
            continue
        newest = line.term
        # A source that grows during the settling makes an expansion reach the same stage a second time.
        identity = (line.application, line.number, line.stage, line.term, line.wall_ms)
        if line.application and identity not in seen:
            seen.add(identity)
            yield line


def latest_entries(lines: Iterable[JournalLine], term: int = _LARGEST_TERM) -> Mapping[str, ExpansionEntry]:
    """Return application → the entry with the highest number and, of that, the last stage.

    Lines of terms after `term`, the term of the leader that reads them, are not of a leader: they would make
    all later lines invalid.
    """
    found: dict[str, ExpansionEntry] = {}
    for line in valid_lines(line for line in lines if line.term <= term):
        entry = line.entry()
        known = found.get(line.application)
        if entry is not None and (known is None or _rank_of(entry) >= _rank_of(known)):
            found[line.application] = entry
    return found


def _rank_of(entry: ExpansionEntry) -> tuple[int, int]:
    order = 2 if entry.stage.is_final else int(entry.stage is Stage.EXPANDED)
    return entry.number, order


@attrs.frozen
class Change:
    """The partition counts of one topic. `by` is the client that expanded it, None if unknown."""

    topic: str
    old: int
    new: int
    by: str | None = None


@attrs.frozen
class PastExpansion:
    """One expansion; `lines` are its stages in the order of the log, at least one."""

    application: str
    number: int
    sources: tuple[Change, ...]
    topics: tuple[Change, ...]
    lines: tuple[JournalLine, ...]

    @property
    def id(self) -> str:
        return self.lines[0].event


def past_expansions(
    lines: Iterable[JournalLine], application: str | None = None
) -> tuple[PastExpansion, ...]:
    """Return the expansions of one application, or of all, in the order in which they began."""
    found: dict[tuple[str, int], list[JournalLine]] = {}
    for line in valid_lines(lines):
        if application in (None, line.application):
            found.setdefault((line.application, line.number), []).append(line)
    return tuple(_past_expansion(tuple(of_one)) for of_one in found.values())


def history_json(past: Iterable[PastExpansion]) -> dict[str, Any]:
    """Return what `headwater agent history --format json` prints."""
    return {"version": 1, "expansions": [_expansion_json(expansion) for expansion in past]}


def _past_expansion(lines: tuple[JournalLine, ...]) -> PastExpansion:
    first, last = lines[0], lines[-1]
    done = {topic: line.client_id for line in reversed(lines) for topic in line.done}
    return PastExpansion(
        first.application,
        first.number,
        _changes_of(first.sources_before, last.sources_after, {}),
        _changes_of(first.before, last.after, done),
        lines,
    )


def _changes_of(
    before: Mapping[str, int], after: Mapping[str, int], done: Mapping[str, str]
) -> tuple[Change, ...]:
    return tuple(
        Change(topic, before.get(topic, 0), count, done.get(topic))
        for topic, count in sorted(after.items())
        if before.get(topic, 0) != count
    )


def outcome_text(expansion: PastExpansion) -> str:
    """Return a short text: how the expansion ended, or its stage."""
    last = expansion.lines[-1]
    seconds = (last.wall_ms - expansion.lines[0].wall_ms) / 1_000
    match last.stage:
        case Stage.STARTED:
            return "in progress, or interrupted"
        case Stage.EXPANDED | Stage.NOTIFIED:
            expanded = next((line for line in expansion.lines if line.stage == Stage.EXPANDED), last)
            seconds = (expanded.wall_ms - expansion.lines[0].wall_ms) / 1_000
            return f"expanded in {seconds:.1f} s"
        case Stage.GIVEN_UP:
            return f"given up after {seconds:.0f} s"
        case stage:
            return stage


def _expansion_json(expansion: PastExpansion) -> dict[str, Any]:
    return {
        "id": expansion.id,
        "application": expansion.application,
        "number": expansion.number,
        "outcome": expansion.lines[-1].stage,
        "sources": [_change_json(change) for change in expansion.sources],
        "topics": [_change_json(change) | {"by": change.by} for change in expansion.topics],
        "stages": [
            {
                "stage": line.stage,
                "at": line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "clientId": line.client_id,
                "host": line.host,
                "term": line.term,
                "reason": line.reason,
            }
            for line in expansion.lines
        ],
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {"topic": change.topic, "from": change.old, "to": change.new}
