"""Find what changes between two versions of Kafka Streams: both build the same random topologies.

`python -m tests.oracle.neighbors 4.2.2 4.3.1 --topologies 1000` prints each kind of difference once, with the
smallest topology that shows it.
"""

import argparse
import difflib
import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import yaml

from tests.oracle.kafka_streams import Answer, Counts, KafkaStreams, OracleDiedError, Refusal, Run
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.situations import Situation, random_situation

_NUMBERS = re.compile(r"[\w.-]*\d[\w.-]*")
_NOT_AVAILABLE = "NotAvailable"


@attrs.frozen
class Pair:
    """Two versions, each in a JVM."""

    old: KafkaStreams
    new: KafkaStreams

    def differences(self, situation: Situation) -> tuple[str, ...]:
        """Return what differs, each a text that begins with its part: `describe`, `insides`, `classic`."""
        runs = situation.runs(self.old.protocols)
        try:
            old, new = (
                each.ask(situation.document, runs, situation.clusters[0]) for each in (self.old, self.new)
            )
        except OracleDiedError:
            return ()
        return tuple(_differences(old, new, runs))


def _differences(old: Answer, new: Answer, runs: Sequence[Run]) -> Iterator[str]:
    if old.refusal or new.refusal:
        if not _is_not_available(old.refusal) and _refusal(old.refusal) != _refusal(new.refusal):
            yield f"refusal: {_refusal(old.refusal)} -> {_refusal(new.refusal)}"
        return
    yield from _lines("describe", old.describe or "", new.describe or "")
    yield from _lines("insides", _json(old.insides), _json(new.insides))
    for run, before, after in zip(runs, old.runs, new.runs, strict=True):
        if _counts(before) != _counts(after) and not _is_not_available(before.refusal):
            yield f"{run.protocol}: {_counts(before)} -> {_counts(after)}"


def _is_not_available(refusal: Refusal | None) -> bool:
    return refusal is not None and refusal.name == _NOT_AVAILABLE


def _refusal(refusal: Refusal | None) -> str:
    return f"{refusal.name} at {refusal.stage}: {refusal.message}" if refusal else "accepted"


def _counts(counts: Counts) -> str:
    if counts.refusal:
        return _refusal(counts.refusal)
    detail = "" if counts.status == "MISSING_INTERNAL_TOPICS" else f"{counts.status} {counts.detail} "
    return f"{detail}{counts.counts} {counts.tasks}"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True)


def _lines(part: str, old: str, new: str) -> Iterator[str]:
    changed = [
        line
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    if changed:
        yield f"{part}:\n" + "\n".join(changed)


def kind(difference: str) -> str:
    """Return a difference without its numbers, to group equal ones."""
    lines = _NUMBERS.sub("#", difference).splitlines()
    return "\n".join([lines[0], *sorted(set(lines[1:]))])


def shrink(pair: Pair, situation: Situation, part: str) -> Situation:
    """Return a smaller situation with a difference in the same part; none of its steps can be omitted."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(situation):
            if any(_part(each) == part for each in pair.differences(smaller)):
                situation, changed = smaller, True
                break
    return situation


def _part(difference: str) -> str:
    return difference.partition(":")[0]


def _smaller(situation: Situation) -> Iterator[Situation]:
    document = situation.document
    steps = document["topology"]
    for size in (len(steps) // 2, len(steps) // 4, 1):
        if size:
            for start in range(0, len(steps), size):
                yield from _with_steps(situation, _without_dangling([*steps[:start], *steps[start + size :]]))
    for index in range(len(steps)):
        yield from _with_steps(situation, _bypassed(steps, index))
    config = document["application"].get("config", {})
    for key in config:
        kept = {name: value for name, value in config.items() if name != key}
        yield attrs.evolve(
            situation, document={**document, "application": {**document["application"], "config": kept}}
        )
    for index, step in enumerate(steps):
        ((operator, options),) = step.items()
        for smaller in _smaller_options(options):
            yield from _with_steps(situation, [*steps[:index], {operator: smaller}, *steps[index + 1 :]])
    if len(situation.clusters) > 1:
        yield attrs.evolve(situation, clusters=situation.clusters[:1])
        yield attrs.evolve(situation, clusters=situation.clusters[1:])


def _smaller_options(options: object) -> Iterator[object]:
    if isinstance(options, dict):
        for key, value in options.items():
            if key not in {"from", "as", "with", "topic", "topics"}:
                yield {name: each for name, each in options.items() if name != key}
            yield from ({**options, key: each} for each in _smaller_options(value))
    if isinstance(options, list):
        for index in range(len(options)):
            yield [*options[:index], *options[index + 1 :]]
            yield from (
                [*options[:index], each, *options[index + 1 :]] for each in _smaller_options(options[index])
            )


def _with_steps(situation: Situation, steps: Sequence[Any]) -> Iterator[Situation]:
    if steps and list(steps) != situation.document["topology"]:
        yield attrs.evolve(situation, document={**situation.document, "topology": list(steps)})


def _bypassed(steps: Sequence[Mapping[str, Any]], index: int) -> list[Mapping[str, Any]]:
    """Return the steps without one, whose input the later ones read."""
    ((_, options),) = steps[index].items()
    options = options or {}
    rest = [*steps[:index], *steps[index + 1 :]]
    if "from" not in options or "as" not in options:
        return rest
    text = re.sub(rf'"(from|with)": "{options["as"]}"', rf'"\1": "{options["from"]}"', json.dumps(rest))
    changed: list[Mapping[str, Any]] = json.loads(text)
    return changed


def _without_dangling(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the steps without those whose input is missing."""
    known: set[str] = set()
    kept = []
    for step in steps:
        text = json.dumps(step)
        if {value for key, value in re.findall(r'"(from|with)": "([^"]*)"', text) if key} <= known:
            kept.append(step)
            known.update(re.findall(r'"as": "([^"]*)"', text))
    return kept


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--topologies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    pair = Pair(KafkaStreams(arguments.old), KafkaStreams(arguments.new))
    found: dict[str, int] = {}
    try:
        for number in range(arguments.topologies):
            source = random.Random(f"{arguments.seed} {number}")  # noqa: S311 - repeatable
            situation = random_situation(Choices(source.randrange))
            for part in dict.fromkeys(map(_part, pair.differences(situation))):
                smallest = shrink(pair, situation, part)
                difference = next(each for each in pair.differences(smallest) if _part(each) == part)
                known = kind(difference)
                found[known] = found.get(known, 0) + 1
                if found[known] == 1:
                    _print(f"== topology {number}\n{difference}\n{_text(smallest)}")
    finally:
        pair.old.close()
        pair.new.close()
    _print(
        f"{arguments.old} -> {arguments.new}: {arguments.topologies} topologies, {sum(found.values())} differ"
    )
    for known, times in sorted(found.items(), key=lambda item: -item[1]):
        _print(f"{times} times: {known}")


def _text(situation: Situation) -> str:
    return yaml.safe_dump(
        {"document": situation.document, "clusters": [dict(each) for each in situation.clusters]},
        sort_keys=False,
        default_flow_style=None,
        width=110,
    )


if __name__ == "__main__":
    main()
