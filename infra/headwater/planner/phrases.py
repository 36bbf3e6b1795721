"""Phrases that several texts share."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from headwater.compiler.java.config_values import parse_whole
from headwater.model.problems import Problem, ProblemCode

_MILLION = 1_000_000
_MOST_NAMES = 10
_PLAIN_VALUE = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9._-]*")
_MINUTE, _HOUR = 60, 3_600
_UNITS = (
    (86_400_000, "day", None),
    (3_600_000, "hour", 100),
    (60_000, "minute", 100),
    (1_000, "second", 100),
    (1, "ms", 10_000),
)
"""Milliseconds of a unit, its name, and from which number on a larger unit is easier to read."""
_FAILED_REQUESTS = frozenset(
    {
        ProblemCode.CLUSTER_UNREACHABLE,
        ProblemCode.REQUEST_NOT_ANSWERED,
        ProblemCode.AUTHENTICATION_REFUSED,
        ProblemCode.NOT_AUTHORIZED,
        ProblemCode.REFUSED_BY_BROKERS,
        ProblemCode.JOURNAL_NOT_FOUND,
    }
)
"""Problems of requests: the summary names the request, and only what was found says why it failed."""


def counted(number: int, noun: str) -> str:
    """Return `1 topic`, `2 topics`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def count_phrase(number: int) -> str:
    """Return a count: `1,234`, `1.2 million`."""
    return f"{number:,}" if number < _MILLION else f"{number / _MILLION:,.1f} million"


def seconds_phrase(seconds: float) -> str:
    """Return about how long something takes: `40 seconds`, `12 minutes`, `2.5 hours`."""
    if seconds < 2 * _MINUTE:
        return counted(max(1, round(seconds)), "second")
    if seconds < 2 * _HOUR:
        return counted(round(seconds / _MINUTE), "minute")
    return f"{seconds / _HOUR:,.1f} hours"


def listed(names: Iterable[str]) -> str:
    """Return all names, sorted and separated by commas."""
    return ", ".join(sorted(names))


def few_names(names: Sequence[str]) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return listed(names[:_MOST_NAMES]) + more


def lines_of_problems(problems: Iterable[tuple[str, str, str]], most: int | None = None) -> Iterator[str]:
    """Yield a line for each problem; a fix that several of them have is a line of its own after them.

    `problems` are code, text and fix of each; the text names the problem without its fix. At most `most`
    problems with the same fix have a line; the others are counted.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for code, text, fix in problems:
        found.setdefault((code, fix), []).append(text)
    for (code, fix), texts in found.items():
        if len(texts) == 1:
            yield f"{texts[0]} {fix}".rstrip()
            continue
        yield from texts[:most]
        if more := len(texts) - len(texts[:most]):
            yield f"{code}: and {counted(more, 'more problem')}"
        if fix:
            yield f"{code}: {fix}"


def summary_phrase(code: str, summary: str, found: str | None) -> str:
    """Return the summary of a problem; if a request failed, with what was found as a second sentence."""
    return f"{summary} Found: {found.rstrip('.')}." if found and code in _FAILED_REQUESTS else summary


def failure_texts(problems: Iterable[Problem]) -> tuple[str, ...]:
    """Return a text for each problem of requests: what happened, and what was found."""
    return tuple(summary_phrase(problem.code, problem.summary, problem.found) for problem in problems)


def setting_text(value: str | None) -> str:
    """Return the value of a topic setting, `unset` for None."""
    return "unset" if value is None else value


def explain_milliseconds(milliseconds: str) -> str:
    """Return milliseconds with their meaning, `90000000 (25 hours)`; -1 means no limit."""
    number = parse_whole(milliseconds)
    if number is None:
        return milliseconds
    if number < 0:
        return f"{milliseconds} (no limit)"
    return milliseconds if number == 0 or number % 1_000 else f"{milliseconds} ({duration_phrase(number)})"


def duration_phrase(milliseconds: int) -> str:
    """Return milliseconds in the units that are easiest to read: `25 hours and 5 minutes`, `500 ms`."""
    *parts, last = _duration_parts(milliseconds)
    return f"{', '.join(parts)} and {last}" if parts else last


def _duration_parts(milliseconds: int) -> list[str]:
    if milliseconds <= 0:
        return [f"{milliseconds:,} ms"]
    position = next(index for index, (size, *_) in enumerate(_UNITS) if milliseconds % size == 0)
    size, noun, most = _UNITS[position]
    number = milliseconds // size
    if most is None or number < most:
        return [f"{number:,} ms" if size == 1 else counted(number, noun)]
    rest = milliseconds % _UNITS[position - 1][0]
    return [*_duration_parts(milliseconds - rest), *_duration_parts(rest)]


def config_text(config: Mapping[str, str]) -> str:
    """Return all settings of an observed topic: if some are in the document, it has no others."""
    entries = ", ".join(f"{key}: {quote_value(value)}" for key, value in sorted(config.items()))
    return f"config: {{{entries}}}"


def quote_value(value: str) -> str:
    """Return the value as YAML within a flow mapping: a comma would end it, and `0:1` would be a number."""
    return value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value, ensure_ascii=False)


_GROUPS = "kafka-consumer-groups.sh --bootstrap-server BROKER"


def leave_streams_group(id_: str) -> str:
    """Return how a version with another topology continues at the offsets of a streams group.

    Brokers convert an empty group to the other protocol since Kafka 4.2, with its offsets (KAFKA-19570).
    """
    return (
        "Set `group.protocol: classic` for the new version: in a streams group, brokers refuse another "
        f"topology (KAFKA-20170). Brokers of Kafka 4.2 or later keep the committed offsets of {id_} for it, "
        f"and a later start can use `streams` again. With brokers of Kafka 4.1, {move_group_offsets(id_)}. "
        "There, keep `classic`: offsets of a streams group cannot be set before its first start."
    )


def move_group_offsets(id_: str) -> str:
    """Return how a classic group gets the offsets of a streams group on brokers that do not convert it."""
    return (
        f"save the offsets by `{_GROUPS} --group {id_} --all-topics --reset-offsets --to-current --dry-run "
        f"--export > offsets.csv`, delete the group by {delete_streams_group(id_)}, and set the offsets by "
        f"`{_GROUPS} --group {id_} --reset-offsets --from-file offsets.csv --execute`"
    )


def delete_streams_group(id_: str) -> str:
    """Return the command that deletes a streams group without members, and which command not to use."""
    return (
        f"`{_GROUPS} --delete --group {id_}` (not "
        "`kafka-streams-groups.sh`: in Kafka 4.1 it deletes the internal topics with the group)"
    )
