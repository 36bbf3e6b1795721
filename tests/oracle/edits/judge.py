"""Compares what `headwater change` predicts with what Kafka Streams does on a real broker."""

import copy
import json
import os
import queue
import random
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import attrs

from headwater.model.compiled import TopicKind
from headwater.model.problems import ProblemCode, errors
from headwater.planner.edits import (
    ApplicationEdit,
    TopicEdit,
    Topologies,
    Verdict,
    compile_topologies,
    find_edit,
)
from headwater.planner.edits.values import OTHER_COUNT
from headwater.spec import parse_document
from tests.oracle.edits.random_edits import Json, RandomEdit, RandomEditor
from tests.oracle.kafka_streams import built_program
from tests.oracle.random_topologies.stores import Choices
from tests.quick_java import QUICK_JAVA

_MAIN = "headwater.oracle.Edits"
_SECONDS = 300
_KEYS, _RECORDS = 5, 14
MOST_EDITS = 4
_ATTEMPTS = 3
_FIRST_MS = round(time.time() * 1000) - 60_000  # brokers delete older records of windows
_QUERYABLE = {"keyValue": "keyValue", "timestampedKeyValue": "keyValue", "timestampedWindow": "window"}


@attrs.frozen
class Trial:
    """An edit with the prediction; `request` is what the Java program runs."""

    edit: RandomEdit
    predicted: ApplicationEdit
    before: Topologies
    after: Topologies
    request: Json
    applied_lines: int = 0

    @property
    def id(self) -> str:
        return self.predicted.id


@attrs.frozen
class Series:
    """Edits of one application: each edits the document that the edit before has made."""

    trials: tuple[Trial, ...]
    request: Json

    @property
    def id(self) -> str:
        return self.trials[0].id


def make_series(seed: int, id_: str, version: str, most: int = MOST_EDITS) -> Series | None:
    """Return up to `most` random edits that both sides build; None if there is none.

    A series ends before an edit whose topics exist already without being used, which only a topology before
    shows, and after an edit that Kafka Streams may refuse.
    """
    chance = random.Random(seed)  # noqa: S311 - a repeatable example
    editor = RandomEditor(Choices(chance.randrange), id_)
    trials: list[Trial] = []
    earlier = set[str]()
    for _ in range(_ATTEMPTS * most):
        document = copy.deepcopy(editor.document)
        trial = _make_trial(editor, chance, version, len(trials))
        if trial is None:
            editor.document = document
            continue
        (old,), (new,) = trial.before.by_id.values(), trial.after.by_id.values()
        if (earlier - old.topics.keys()) & new.topics.keys():
            break
        earlier |= old.topics.keys() | new.topics.keys()
        trials.append(trial)
        editor.document = trial.edit.after
        is_risk = any(topic.verdict in (Verdict.RESET, Verdict.MOVED) for topic in trial.predicted.topics)
        if is_risk or len(trials) == most:
            break
    if not trials:
        return None
    sides = [(trials[0].before, trials[0].edit.before), *((each.after, each.edit.after) for each in trials)]
    topics = sorted({topic for side, document in sides for topic in _inputs(side, document)})
    return series_of(trials, _records(chance, topics, _RECORDS))


def _make_trial(editor: RandomEditor, chance: random.Random, version: str, number: int) -> Trial | None:
    """Return a random edit that both sides build; None if Headwater refuses one of them."""
    edit = editor.edit()
    before, after = (
        compiled_side(document, edit.partitions, version) for document in (edit.before, edit.after)
    )
    if before is None or after is None or edit.before == edit.after:
        return None
    if any(_reads_own_output(side) or _leaves_partitions(side) for side in (before, after)):
        return None
    found = find_edit(before, after)
    if found.problems or not found.applications:
        return None
    (predicted,) = found.applications
    applied = 0
    if predicted.lines and chance.random() < 0.4:  # the advice is followed, and judged instead
        edit = attrs.evolve(edit, after=with_lines(edit.after, predicted))
        named = compiled_side(edit.after, edit.partitions, version)
        assert named is not None, "the document with the advised lines has errors"
        after, applied = named, len(predicted.lines)
        (predicted,) = find_edit(before, after).applications
    request = _request(
        edit, predicted, before, after, _records(chance, _inputs(after, edit.after), 4, (number + 1) * 100)
    )
    return Trial(edit, predicted, before, after, request, applied)


def _reads_own_output(side: Topologies) -> bool:
    """Return whether records circulate, so that the application never becomes idle."""
    return any(
        set(part.sinks) & set(topology.compiled.external_sources)
        for topology in side.by_id.values()
        for part in topology.compiled.subtopologies
    )


def _leaves_partitions(side: Topologies) -> bool:
    """Return whether Kafka Streams starts, but reads not all partitions, so that it never becomes idle."""
    problems = (problem for topology in side.by_id.values() for problem in topology.compiled.problems)
    return any(problem.code is ProblemCode.UNCHECKED_COPARTITIONING for problem in problems)


def compiled_side(document: Json, partitions: Mapping[str, int], version: str) -> Topologies | None:
    application = {**document["application"], "kafkaStreams": version}
    loaded = parse_document({**document, "application": application})
    if errors(loaded.problems):
        return None
    found = compile_topologies(loaded.documents, partitions)
    return None if any(errors(each.compiled.problems) for each in found.by_id.values()) else found


def with_lines(document: Json, predicted: ApplicationEdit) -> Json:
    """Return the document with the advised lines, as a user writes them."""
    changed = copy.deepcopy(document)
    for line in predicted.lines:
        assert line.location is not None
        _, _, number, *path = line.location.pointer.split("/")
        step: Any = changed["topology"][int(number)]
        while len(path) > 1:
            word, *path = path
            step = step[int(word)] if isinstance(step, list) else step[word]
        ((operator, options),) = step.items()
        options = dict(options or {})
        key, _, value = line.document.partition(": ")
        given, name = options.get(key), line.code.split('"')[1]
        if key == "materialized" and isinstance(given, dict) and "supplier" in given:
            options[key] = {**given, "supplier": {**given["supplier"], "name": name}}
        elif key == "materialized" and isinstance(given, dict):
            options[key] = {**given, "store": name}
        else:
            options[key] = value
        step[operator] = options
    return changed


def _request(
    edit: RandomEdit, predicted: ApplicationEdit, before: Topologies, after: Topologies, records: list[Json]
) -> Json:
    (old,), (new,) = before.by_id.values(), after.by_id.values()
    internal = {*old.topics, *new.topics}
    kept = {
        topic.store: _QUERYABLE[layout.kind]
        for topic in predicted.topics
        if topic.verdict is Verdict.KEPT and topic.severity.value == "info" and topic.store is not None
        if (layout := old.store_layouts.get(topic.store)) is not None and layout.kind in _QUERYABLE
        if topic.topic in internal
    }
    return {
        "document": edit.after,
        "reads": _read_topics(after),
        "input": records,
        "repartitions": sorted(topic.name for topic in old.repartitions.values()),
        "kept": kept,
    }


def series_of(trials: Sequence[Trial], records: Sequence[Json]) -> Series:
    """Return the series of edits; `records` are the input before them."""
    first = trials[0]
    counts = first.edit.partitions
    sides = [first.before, *(trial.after for trial in trials)]
    topologies = [topology for side in sides for topology in side.by_id.values()]
    internal = {topic for topology in topologies for topic in topology.topics}
    written = {topic for each in topologies for part in each.compiled.subtopologies for topic in part.sinks}
    read = {
        topic
        for each in topologies
        for topic in (*each.compiled.external_sources, *each.compiled.global_topics)
    }
    request = {
        "id": first.id,
        "topics": {topic: counts.get(topic, 1) for topic in sorted({*read, *written} - internal)},
        "document": first.edit.before,
        "reads": _read_topics(first.before),
        "input": list(records),
        "edits": [trial.request for trial in trials],
    }
    return Series(tuple(trials), request)


def _read_topics(side: Topologies) -> list[str]:
    (topology,) = side.by_id.values()
    parts = topology.compiled.subtopologies
    return sorted({topic for part in parts if not part.is_global for topic in part.sources})


def _inputs(side: Topologies, document: Json) -> list[str]:
    """Return the user topics that an application reads, without the topics of `addGlobalStore`.

    Kafka Streams cannot restore a global store of the Processor API from records without serdes.
    """
    (topology,) = side.by_id.values()
    filled = {step["addGlobalStore"]["topic"] for step in document["topology"] if "addGlobalStore" in step}
    return sorted({*topology.compiled.external_sources, *topology.compiled.global_topics} - filled)


def _records(chance: random.Random, topics: Sequence[str], number: int, first: int = 0) -> list[Json]:
    return [_record(chance, topic, first + each) for topic in topics for each in range(number)]


def _record(chance: random.Random, topic: str, number: int) -> Json:
    key = "abcde"[chance.randrange(_KEYS)]
    value = f"{'abcde'[chance.randrange(_KEYS)]}:{chance.randrange(90)}"
    return {"topic": topic, "key": key, "value": value, "timestamp": _FIRST_MS + number * 10}


def differences(trial: Trial, found: Json) -> tuple[list[str], str]:
    """Return the wrong predictions, and why the run cannot be judged (empty if it can)."""
    if "broken" in found:
        return [], f"broken: {found['broken']}"
    if found["failedBefore"]:
        return [], f"the topology before fails: {found['failedBefore']}"
    if not found["wasIdle"]:
        return [], "records before the edit are still being processed"
    failed = str(found["failedAfter"])
    topics = trial.predicted.topics
    moved = [topic for topic in topics if OTHER_COUNT in topic.why]
    existing_moved = [topic for topic in moved if topic.topic in found["entries"]]
    if "has invalid partitions" in failed:
        return ([] if moved else [f"an internal topic has another count: {failed}"]), ""
    wrong = []
    if existing_moved:
        wrong.append(f"{existing_moved[0].topic} was predicted with another count, but Kafka Streams starts")
    if failed != "[]":
        if any(topic.verdict is Verdict.RESET for topic in topics):
            return [], "fails, as predicted for records of another format"
        return wrong, f"the topology afterwards fails: {failed}"
    wrong += [text for topic in topics for text in _store_differences(trial, topic, found)]
    used = {topic.topic for topic in topics if topic.verdict is not Verdict.ORPHANED}
    wrong += [text for topic in topics for text in _flight_differences(topic, found, used)]
    if found["isIdle"]:
        wrong += _offset_differences(trial, found)
    return wrong, "" if found["isIdle"] else "records are still being processed"


def _store_differences(trial: Trial, topic: TopicEdit, found: Json) -> Iterator[str]:
    """Yield a difference between the records that a store restored and the records of its verdict."""
    if topic.kind is not TopicKind.CHANGELOG:
        return
    restored, entries = found["restored"], found["entries"]
    own = sum(count for name, count in restored.items() if name == f"{topic.store} {topic.topic}")
    existed = topic.topic in entries
    expected: int | None = None
    match topic.verdict:
        case Verdict.KEPT | Verdict.RESET if existed:
            expected = entries[topic.topic]
        case Verdict.RENAMED | Verdict.RESET:
            expected = 0
        case Verdict.ADDED if topic.topic.startswith(f"{trial.id}-"):
            expected = 0
        case Verdict.ORPHANED:
            expected, own = 0, sum(name.endswith(f" {topic.topic}") for name in restored)
        case Verdict.REBUILT:
            offsets = found["committed"].items()
            expected = sum(end for name, end in offsets if name.rpartition("-")[0] == topic.topic)
    label = f"{topic.verdict} {topic.store} ({topic.topic})"
    if topic.verdict is Verdict.UNKNOWN:
        yield f"{label}, although both sides are documents with calls"
    if expected is not None and own != expected:
        yield f"{label}: {own} records restored, expected {expected}"
    old, new = (found[side].get(topic.store) for side in ("dumpBefore", "dumpAfter"))
    if topic.verdict is Verdict.KEPT and isinstance(old, list) and old != new:
        yield f"{label}: entries were {old} and are {new}"


def _flight_differences(topic: TopicEdit, found: Json, used: set[str]) -> Iterator[str]:
    """Yield a record in flight whose fate differs from its verdict; `used` are the topics after the edit.

    The verdict of another topic says who reads a former topic that is still used.
    """
    if topic.kind is TopicKind.CHANGELOG:
        return
    name = topic.former if topic.verdict is Verdict.RENAMED else topic.topic
    for partition, end in found["inFlight"].get(name, {}).items():
        is_read = found["finallyCommitted"].get(partition, 0) >= end
        if topic.verdict in (Verdict.KEPT, Verdict.RESET) and not is_read and found["isIdle"]:
            yield f"{topic.verdict} {name}: the record in flight in {partition} is not processed"
        if topic.verdict in (Verdict.RENAMED, Verdict.ORPHANED) and is_read and name not in used:
            yield f"{topic.verdict} {name}: the record in flight in {partition} is processed"


def _offset_differences(trial: Trial, found: Json) -> Iterator[str]:
    (old,), (new,) = trial.before.by_id.values(), trial.after.by_id.values()
    both = set(old.compiled.external_sources) & set(new.compiled.external_sources)
    for partition, (first, count) in found["read"].items():
        topic, committed = partition.rpartition("-")[0], found["committed"].get(partition)
        if topic not in both:
            continue
        if committed is not None and first < committed:
            yield f"{partition} is read again from {first}, but {committed} was committed"
        if committed is not None and first > committed:
            yield f"{partition} is read from {first}, so records from {committed} on are skipped"
        if found["finallyCommitted"].get(partition) != first + count:
            yield f"{partition}: {count} records from {first} on are read, not all"


@contextmanager
def edits_program(version: str) -> Iterator["EditsProgram"]:
    """Run the Java program of one version."""
    java, folder = built_program(version)
    class_path = os.pathsep.join((str(folder / "classes"), str(folder / "jars" / "*")))
    flags = ["-Xmx1200m", *QUICK_JAVA]
    process = subprocess.Popen(
        [str(java), *flags, "-cp", class_path, _MAIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers: queue.Queue[str] = queue.Queue()
    listener = threading.Thread(target=_listen, args=(process.stdout, answers), daemon=True)
    listener.start()
    try:
        yield EditsProgram(process.stdin, answers)
    finally:
        process.kill()
        process.wait()
        listener.join()
        process.stdin.close()
        process.stdout.close()


def _listen(output: IO[str], answers: "queue.Queue[str]") -> None:
    for line in output:
        answers.put(line)
    answers.put("")


@attrs.frozen
class EditsProgram:
    """One Java process that runs edits, several at once."""

    requests: IO[str]
    answers: "queue.Queue[str]"

    def run(
        self, bootstrap_servers: str, series: Iterable[Series], parallel: int = 4
    ) -> Iterator[tuple[Trial, Json]]:
        """Yield each edit with what Kafka Streams did, in the order in which they end."""
        chosen = list(series)
        request = {
            "bootstrapServers": bootstrap_servers,
            "parallel": parallel,
            "series": [each.request for each in chosen],
        }
        self.requests.write(json.dumps(request) + "\n")
        self.requests.flush()
        waiting = {(each.id, number): trial for each in chosen for number, trial in enumerate(each.trials, 1)}
        while waiting:
            line = self.answers.get(timeout=_SECONDS)
            assert line, "the Java program has ended"
            found: Json = json.loads(line)
            yield waiting.pop((found["id"], found["number"])), found
