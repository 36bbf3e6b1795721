"""Random data with present timestamps, caches and batches: the engine writes what Kafka Streams writes.

Values, timestamps, headers, changelogs and the order of each topic are compared, for three versions.
"""

import json
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import attrs
import pytest

from headwater.model.versions import SUPPORTED
from headwater.spec import load_text
from headwater_spark.engine import record_order, task
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program.settings import engine_settings
from headwater_spark.engine.task import PoisonRecordError
from tests.oracle.kafka_streams import KafkaStreams, Refusal
from tests.runtime.engine.fuzzing.data import batches, present_records, with_emoji
from tests.runtime.engine.fuzzing.functions import FORMATS, SCHEMAS, TEXT, ValueFormat
from tests.runtime.engine.fuzzing.generation import Generator
from tests.runtime.engine.fuzzing.rounds import Rounds, in_order_of_test_driver, smallest_heads
from tests.runtime.engine.fuzzing.test_data import (
    DIED,
    NOT_STARTED,
    NULL_KEY_WAITS,
    Outputs,
    TextProgram,
    comparable,
    first_difference,
    of_version,
    shown,
    theirs,
)
from tests.runtime.replay import runnable_programs

VERSIONS = ("3.9.2", "4.1.2", str(SUPPORTED[-1]))
_QUICK = range(20)
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "700"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
_DEFAULT = 10 * 1024 * 1024
_CACHES = (_DEFAULT, _DEFAULT, _DEFAULT, _DEFAULT, 1_000_000, 0)
_SMALL_CACHES = (150, 400, 1_000, 4_000)
_MISSED_IN_SMALL_CACHES = frozenset({"join", "leftJoin", "outerJoin"})
"""Joins of tables may read the previous row of a key that is leaving the cache (`test_caches`)."""
_MOST_RECORDS = 60
Batches = list[list[dict[str, Any]]]


@attrs.frozen
class Situation:
    document: dict[str, Any]
    batches: Batches
    cache_bytes: int

    @classmethod
    def of(cls, seed: int, version: str, *, has_rare_calls: bool = False) -> "Situation":
        chance = random.Random(seed)  # noqa: S311 - the same topologies in each run
        return cls.drawn(Generator(chance, has_rare_calls=has_rare_calls), version)

    @classmethod
    def of_format(cls, form: ValueFormat, seed: int, version: str) -> "Situation":
        """Return a situation with values of a format."""
        chance = random.Random(f"{form.name} {seed}")  # noqa: S311 - as above
        return cls.drawn(Generator.of_format(chance, form), version)

    @classmethod
    def drawn(cls, generator: Generator, version: str) -> "Situation":
        chance = generator.random
        document = generator.document(chance.randint(1, 8))
        cache = _cache_of(document, chance)
        # a cache of Kafka Streams reads all segments of a search one by one: minutes for those of months
        data = present_records(chance, generator.topics, chance.randint(10, _MOST_RECORDS), months=cache == 0)
        if generator.form is not TEXT:
            data = [generator.form.encoded(with_emoji(record)) for record in data]
        document = of_version(document, version)
        application = document["application"]
        config = {**application["config"], "statestore.cache.max.bytes": str(cache)}
        document = {**document, "application": {**application, "config": config}}
        return cls(document, batches(chance, data), cache)


def _cache_of(document: dict[str, Any], chance: random.Random) -> int:
    """Return a size of the cache, a small one only where Kafka Streams loses no records that leave it early.

    None for stores that forget timestamps: their cache remembers them after a commit in Kafka Streams, but
    these caches are empty when a batch begins.
    """
    steps = document["topology"]
    used = {call for step in steps for call in step} | {w for s in steps for w in s.get("windowedBy", {})}
    stores = [
        options["materialized"] for step in steps for options in step.values() if "materialized" in options
    ]
    suppliers = [store["supplier"] for store in stores if "supplier" in store]
    forgetting = any(each["kind"] in {"keyValue", "window"} and "type" not in each for each in suppliers)
    if forgetting:
        return 0
    may_be_small = used.isdisjoint(_MISSED_IN_SMALL_CACHES | {"sliding"})
    return chance.choice(_SMALL_CACHES if may_be_small and chance.randrange(3) == 0 else _CACHES)


def rounds_of(document: dict[str, Any]) -> Rounds:
    return Rounds(_programs_of(json.dumps(document)))


@lru_cache(maxsize=4)  # each situation is processed several times
def _programs_of(text: str) -> Sequence[SubtopologyProgram]:
    loaded = load_text(text, "rounds.json")
    assert not loaded.problems, loaded.problems
    settings = attrs.evolve(
        engine_settings(loaded.documents[0].application.config), emit_interval_ms=0, outer_join_interval_ms=0
    )
    fields = [field.name for field in attrs.fields(SubtopologyProgram)]
    made = runnable_programs(loaded.documents[0], (), settings, SCHEMAS)
    return [TextProgram(**{name: getattr(each, name) for name in fields}) for each in made]


def ours(situation: Situation, *, reopens: bool = False) -> Outputs:
    rounds = rounds_of(situation.document)
    rounds.start()
    outputs: Outputs = defaultdict(list)
    for number, batch in enumerate(situation.batches):
        if reopens:
            rounds.reopen()
        for topic, _, key, value, timestamp, headers in rounds.process(batch):
            names = tuple(name for name, _ in headers)
            outputs[topic].append((number, shown(key), shown(value), timestamp, names))
    return dict(outputs)


def differences(kafka_streams: KafkaStreams, seed: int, *, has_rare_calls: bool = False) -> Iterator[str]:
    situation = Situation.of(seed, kafka_streams.version, has_rare_calls=has_rare_calls)
    yield from differences_in(kafka_streams, seed, situation)


def differences_in(kafka_streams: KafkaStreams, seed: int, situation: Situation) -> Iterator[str]:
    """Yield differences; none for topologies that Kafka Streams rejects, or data on which both fail."""
    groups = rounds_of(situation.document).groups
    answer = kafka_streams.run_rounds(situation.document, situation.batches, groups, situation.cache_bytes)
    application, steps = situation.document["application"], situation.document["topology"]
    about = f"{application}\n" + "\n".join(json.dumps(step) for step in steps)
    if isinstance(answer, Refusal):
        if answer.name == "ConfigException":
            yield f"seed {seed}: the example cannot be compared, {answer.message}\n{about}"
        meant = answer.message.startswith(NOT_STARTED) or answer.message.endswith(NULL_KEY_WAITS)
        if answer.name == DIED and not meant and not _dies(situation):
            yield f"seed {seed}: Kafka Streams dies, {answer.message}\n{about}"
        return
    found, wanted = ours(situation), theirs(list(answer))
    for topic in sorted(found.keys() | wanted.keys()):
        one, other = comparable(found.get(topic, []), wanted.get(topic, []))
        if one != other:
            at = first_difference(one, other)
            yield (
                f"seed {seed}: {topic} differs at {at}: {one[at : at + 3]} instead of {other[at : at + 3]}\n"
                f"{list(map(len, situation.batches))} {about}"
            )


def _dies(situation: Situation) -> bool:
    try:
        ours(situation)
    except PoisonRecordError:
        return True
    return False


@pytest.fixture(autouse=True)
def _heads_as_in_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_order, "_smallest_heads", smallest_heads)
    monkeypatch.setattr(task, "in_timestamp_order", in_order_of_test_driver)


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest, kafka_streams_of: Callable[[str], KafkaStreams]) -> KafkaStreams:
    return kafka_streams_of(request.param)


def test_records_with_equal_timestamps_are_in_the_order_of_a_priority_queue() -> None:
    """Otherwise the engine would order them by topic, and few seeds show it."""
    steps = [{"stream": {"topics": ["a", "b", "c"]}}, {"to": {"topic": "out"}}]
    rounds = rounds_of({"application": {"id": "app"}, "topology": steps})
    record: dict[str, Any] = {"key": None, "timestamp": 1_000, "headers": []}
    written = rounds.process([{**record, "topic": topic, "value": topic} for topic in ("a", "b", "c")])
    assert [value for _, _, _, value, _, _ in written] == [b"a", b"c", b"b"]


@pytest.mark.parametrize("seed", range(12))
def test_new_tasks_continue_where_others_stopped(seed: int) -> None:
    situation = Situation.of(seed, VERSIONS[-1])
    assert ours(situation, reopens=True) == ours(situation)


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", _QUICK)
def test_same_answers(version: KafkaStreams, seed: int) -> None:
    found = next(differences(version, seed), None)
    assert found is None, found


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_same_answers_with_values_of_a_format(version: KafkaStreams, form: ValueFormat) -> None:
    for seed in range(3):
        situation = Situation.of_format(form, seed, version.version)
        found = next(differences_in(version, seed, situation), None)
        assert found is None, found


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.soak
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_same_answers_with_values_of_a_format_for_long(version: KafkaStreams, form: ValueFormat) -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        situation = Situation.of_format(form, seed, version.version)
        found = next(differences_in(version, seed, situation), None)
        assert found is None, found


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.soak
def test_same_answers_for_long(version: KafkaStreams) -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        found = next(differences(version, seed, has_rare_calls=True), None)
        assert found is None, found
