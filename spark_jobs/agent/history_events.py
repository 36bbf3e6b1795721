"""PURE. The journal told by expansion: why it began, what it changed, how it went on."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from spark_jobs.agent.history_records import JournalLine, that_count
from spark_jobs.agent.state import Stage


@attrs.frozen
class Change:
    """The count of one topic. `by` is the client that expanded it, None while it is not known."""

    topic: str
    old: int
    new: int
    by: str | None = None


@attrs.frozen
class PastExpansion:
    """One expansion. `lines` are its stages in the order of the log; there is at least one."""

    application: str
    number: int
    sources: tuple[Change, ...]
    topics: tuple[Change, ...]
    lines: tuple[JournalLine, ...]

    @property
    def id(self) -> str:
        return self.lines[0].event


def expansions(lines: Iterable[JournalLine], application: str | None = None) -> tuple[PastExpansion, ...]:
    """Return the expansions of one application, or of all, in the order in which they began."""
    found: dict[tuple[str, int], list[JournalLine]] = {}
    for line in that_count(lines):
        if application in (None, line.application):
            found.setdefault((line.application, line.number), []).append(line)
    return tuple(_expansion(tuple(of_one)) for of_one in found.values())


def history_json(past: Iterable[PastExpansion]) -> dict[str, Any]:
    """Return what `headwater agent history --format json` prints."""
    return {"version": 1, "expansions": [_json(expansion) for expansion in past]}


def _expansion(lines: tuple[JournalLine, ...]) -> PastExpansion:
    first, last = lines[0], lines[-1]
    done = {topic: line.client_id for line in reversed(lines) for topic in line.done}
    return PastExpansion(
        first.application,
        first.number,
        _changes(first.sources_before, last.sources_after, {}),
        _changes(first.before, last.after, done),
        lines,
    )


def _changes(
    before: Mapping[str, int], after: Mapping[str, int], done: Mapping[str, str]
) -> tuple[Change, ...]:
    return tuple(
        Change(topic, before.get(topic, 0), count, done.get(topic))
        for topic, count in sorted(after.items())
        if before.get(topic, 0) != count
    )


def outcome(expansion: PastExpansion) -> str:
    """Return in a few words how it ended, or how far it is."""
    last = expansion.lines[-1]
    seconds = (last.wall_ms - expansion.lines[0].wall_ms) / 1_000
    match last.stage:
        case Stage.STARTED:
            return "going on, or interrupted"
        case Stage.EXPANDED | Stage.NOTIFIED:
            expanded = next((line for line in expansion.lines if line.stage == Stage.EXPANDED), last)
            seconds = (expanded.wall_ms - expansion.lines[0].wall_ms) / 1_000
            return f"expanded in {seconds:.1f} s"
        case Stage.GIVEN_UP:
            return f"given up after {seconds:.0f} s"
        case stage:
            return stage


def _json(expansion: PastExpansion) -> dict[str, Any]:
    return {
        "id": expansion.id,
        "application": expansion.application,
        "number": expansion.number,
        "outcome": expansion.lines[-1].stage,
        "sources": [_change(change) for change in expansion.sources],
        "topics": [_change(change) | {"by": change.by} for change in expansion.topics],
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


def _change(change: Change) -> dict[str, Any]:
    return {"topic": change.topic, "from": change.old, "to": change.new}
