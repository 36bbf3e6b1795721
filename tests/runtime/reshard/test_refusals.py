"""What a reshard refuses by name before anything changes, and the layouts that entries show."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.compiled import TopicKind
from headwater.model.nodes import ChangelogKind
from headwater.model.offset_metadata import (
    LINEAGE_KEY,
    MoveMark,
    MovePhase,
    OffsetMetadata,
    decode_metadata,
    decode_time,
    encode_processor_metadata,
)
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.spec import load_text
from headwater_spark.driver.processor_move.moves import Committed, MovedPart
from headwater_spark.driver.reshard.checks import timestamp_problems
from headwater_spark.driver.reshard.copy_plan import plan_copies
from headwater_spark.driver.reshard.input_changes import InputChange
from headwater_spark.driver.reshard.journal import read_journal
from headwater_spark.driver.reshard.plan import Request, plan_reshard
from headwater_spark.engine.partitioners.hashing import PartitionerError, UserPartitioner, default_partition
from headwater_spark.engine.program import build_programs
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS, EntryLayout, find_layouts
from headwater_spark.engine.scaling.moved_stores import MovedStore

Steps = list[dict[str, Any]]
_COUNT: Steps = [{"stream": {"topic": "in"}}, {"groupByKey": {}}, {"count": {"materialized": "totals"}}]
_EXACTLY_ONCE = {"config": {"processing.guarantee": "exactly_once_v2"}}


def _refused(
    steps: Steps,
    before: Mapping[str, int],
    after: Mapping[str, int],
    changed: Mapping[str, int] | None = None,
    application: Mapping[str, object] | None = None,
    *,
    layouts: Mapping[str, EntryLayout] | None = None,
    partitioners: Mapping[str, UserPartitioner] | None = None,
) -> list[Problem]:
    """Return why an application with `before` partitions cannot have `after`; `changed` are other counts."""
    text = json.dumps({"application": {"id": "app", **(application or {})}, "topology": steps})
    loaded = load_text(text, "app.yaml")
    assert not errors(loaded.problems), [problem.summary for problem in loaded.problems]
    (document,) = loaded.documents
    old, new = compile_document(document, before), compile_document(document, after)
    assert not errors(new.problems), [problem.summary for problem in new.problems]
    present = {**before, **{topic.name: topic.partitions for topic in old.internal_topics}, **(changed or {})}
    request = Request(
        document=document,
        compiled=new,
        programs=build_programs(document, build_nodes(document), new),
        before=present,
        present=present,
        layouts=layouts or {},
        partitioners=partitioners or {},
    )
    _, problems = plan_reshard(request, lambda *_: ())
    return list(problems)


@pytest.mark.parametrize(
    ("steps", "application", "reason"),
    [
        pytest.param(_COUNT, {"processors": 2, **_EXACTLY_ONCE}, "declares `processors`", id="processors"),
        pytest.param(
            _COUNT,
            {"config": {"static.partitioner.class": "range", "static.partitioner.bounds": "m"}},
            "does not partition by Kafka's default partitioner: range",
            id="static partitioner",
        ),
        pytest.param(
            [
                {"stream": {"topic": "in"}},
                {"repartition": {"name": "spread", "partitioner": "app.parts:Own"}},
                {"groupByKey": {}},
                {"count": {"materialized": "totals"}},
            ],
            {},
            "writes app-spread-repartition by app.parts:Own",
            id="partitioner of a sink",
        ),
        pytest.param(
            [
                {"addStateStore": {"name": "own", "kind": "keyValue"}},
                {"stream": {"topic": "in"}},
                {"process": {"class": "app.own:Processor", "stores": ["own"]}},
            ],
            {},
            "store own of app cannot move: a store of a user's processor",
            id="store of a processor",
        ),
        pytest.param(
            [
                {"stream": {"topic": "in"}},
                {"groupByKey": {}},
                {"count": {"materialized": {"store": "totals", "logging": False}}},
            ],
            {},
            "store totals of app cannot move: it has no changelog topic",
            id="store without a changelog topic",
        ),
        pytest.param(
            [{"table": {"topic": "in", "materialized": "rows"}}],
            {"config": {"topology.optimization": "all"}},
            "it is restored from the source topic in",
            id="source topic as changelog",
        ),
    ],
)
def test_state_that_cannot_move_is_refused_by_name(
    steps: Steps, application: dict[str, object], reason: str
) -> None:
    problems = _refused(steps, {"in": 2}, {"in": 4}, application=application)
    assert [problem.code for problem in problems] == [ProblemCode.RESHARD_REFUSED]
    assert reason in problems[0].summary


_OWN = UserPartitioner("app.parts:own", lambda key, count: key[0] % count)
_MERGED: Steps = [
    {"stream": {"topic": "in", "as": "in"}},
    {"stream": {"topic": "other", "as": "other"}},
    {"merge": {"from": "in", "with": "other"}},
    *_COUNT[1:],
]


def test_partitioners_of_users_must_fit_the_inputs() -> None:
    spread: Steps = [
        {"stream": {"topic": "in"}},
        {"repartition": {"name": "spread", "partitioner": "app.parts:Own"}},
        {"groupByKey": {}},
        {"count": {"materialized": "totals"}},
    ]
    counts: tuple[Mapping[str, int], Mapping[str, int]] = {"in": 2}, {"in": 4}
    assert _refused(spread, *counts, partitioners={"app-spread-repartition": _OWN}) == []
    assert _refused(_COUNT, *counts, partitioners={"in": _OWN}) == []
    [needless] = _refused(_COUNT, *counts, partitioners={"out": _OWN})
    assert "app does not read out" in needless.summary
    both: tuple[Mapping[str, int], Mapping[str, int]] = {"in": 2, "other": 2}, {"in": 4, "other": 4}
    assert _refused(_MERGED, *both, partitioners={"in": _OWN, "other": _OWN}) == []
    [different] = _refused(_MERGED, *both, partitioners={"in": _OWN})
    assert different.found == "in: app.parts:own, other: default"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda _key, count: count, "returned 4 for a key and 4 partitions"),
        (lambda _key, _count: -1, "returned -1"),
        (lambda _key, _count: "1", "returned '1'"),
        (lambda _key, _count: True, "returned True"),
        (lambda key, _count: key["id"], "TypeError"),
    ],
)
def test_a_partitioner_that_returns_no_partition_fails(
    function: Callable[[bytes, int], object], reason: str
) -> None:
    with pytest.raises(PartitionerError) as raised:
        UserPartitioner("app.parts:own", function)(b"key", 4)
    assert reason in raised.value.reason


@pytest.mark.parametrize("store", ["totals", "missing"])
def test_a_layout_that_the_document_shows_cannot_be_named(store: str) -> None:
    [problem] = _refused(_COUNT, {"in": 1}, {"in": 4}, layouts={store: LAYOUTS["window"]})
    assert problem.code is ProblemCode.RESHARD_REFUSED
    assert f"store {store} of app cannot be named" in problem.summary


def test_counts_that_do_not_fit_are_refused() -> None:
    assert _refused(_COUNT, {"in": 2}, {"in": 4}) == []
    [wide] = _refused(_COUNT, {"in": 2}, {"in": 4}, {"app-totals-changelog": 5})
    assert (wide.code, wide.topic) == (ProblemCode.RESHARD_REFUSED, "app-totals-changelog")
    assert "4 instead of 5 partitions" in wide.summary
    [different] = _refused(_MERGED, {"in": 2, "other": 2}, {"in": 4, "other": 2})
    assert different.code is ProblemCode.RESHARD_REFUSED
    assert different.found == "in: 4, other: 2"


def test_state_that_no_count_moves_is_refused_if_source_topics_get_more_partitions() -> None:
    """Entries move where a count changes. Otherwise keys would leave their state without a word."""
    [expanded] = _refused(_COUNT, {"in": 2}, {"in": 4}, {"app-totals-changelog": 4})
    assert (expanded.code, expanded.found) == (
        ProblemCode.RESHARD_REFUSED,
        "app-totals-changelog: 4, in: 2",
    )
    [wider] = _refused(_MERGED, {"in": 2, "other": 4}, {"in": 4, "other": 4})
    assert wider.code is ProblemCode.RESHARD_REFUSED
    assert wider.found == "app-totals-changelog: 4, in: 2, other: 4"
    assert _refused(_COUNT, {"in": 4}, {"in": 4}) == []


def test_closed_windows_need_a_multiple_of_the_count() -> None:
    store = MovedStore("hours", "app-hours-changelog", lambda key: key)
    committed = {each: Committed(5, encode_processor_metadata(9, {"hours": each})) for each in range(2)}

    def problem(after: int) -> Problem | None:
        part = MovedPart("0", {"in": after}, (store,))
        return InputChange("in", 2, after, 2, part).problem("app", committed)

    assert problem(4) is None
    refused = problem(5)
    assert refused is not None
    assert refused.code is ProblemCode.RESHARD_REFUSED


def test_topics_whose_timestamps_brokers_replace_are_refused() -> None:
    config = {"message.timestamp.type": "LogAppendTime"}
    topics = {
        name: LiveTopic(name, "", 2, 1, given) for name, given in (("app-a-changelog", config), ("other", {}))
    }
    snapshot = ClusterSnapshot("", 1, topics, topic_defaults={"message.timestamp.type": "CreateTime"})
    [problem] = timestamp_problems("app", snapshot, topics)
    assert (problem.code, problem.topic) == (ProblemCode.RESHARD_REFUSED, "app-a-changelog")


def test_records_that_were_processed_early_are_refused() -> None:
    positions = OffsetMetadata(1).encode(9, {"0_1": 7})
    change = InputChange("app-by-repartition", 2, 4, 2, MovedPart("1", {"app-by-repartition": 4}, ()))
    refused = change.problem("app", {0: Committed(5, positions), 1: Committed(5)})
    assert refused is not None
    assert refused.code is ProblemCode.UNPROCESSED_RECORDS


def test_tasks_of_the_runtime_continue_with_the_latest_time_and_restore_their_state() -> None:
    """Of 2 tasks, 4 continue one each; task 0 keeps its local state, and reads what is new."""
    part = MovedPart("0", {"in": 4}, (MovedStore("totals", "app-totals-changelog", lambda key: key),))
    clocks = ({LINEAGE_KEY: 7, "stream-time": 50}, {LINEAGE_KEY: 8, "stream-time": 90})
    committed = {
        each: Committed(5, OffsetMetadata(3 + each, times).encode(100 + each))
        for each, times in enumerate(clocks)
    }
    texts = [InputChange("in", 2, 4, 2, part).text(each, committed) for each in range(4)]
    found = [decode_metadata(text) for text in texts]
    assert [decode_time(text) for text in texts] == [100, 101, 100, 101]
    assert found[:2] == [OffsetMetadata(5, dict(clocks[0])), OffsetMetadata(6, dict(clocks[1]))]
    assert found[2:] == [OffsetMetadata(5, {"stream-time": 50}), OffsetMetadata(6, {"stream-time": 90})]
    mixed = decode_metadata(InputChange("in", 2, 3, 2, part).text(0, committed))
    assert mixed == OffsetMetadata(6, {"stream-time": 90})


def _keys(layout: str, number: int, partitions: int) -> list[tuple[int, list[bytes]]]:
    chance = random.Random(number)  # noqa: S311 - the same keys in each run
    found: dict[int, list[bytes]] = {each: [] for each in range(partitions)}
    for each in range(number):
        record_key, given = b"customer %d" % each, LAYOUTS[layout]
        key = chance.randbytes(given.before) + record_key + chance.randbytes(given.after)
        if given.is_subscription:
            key = len(record_key).to_bytes(4, "big") + record_key + b"left %d" % each
        found[default_partition(record_key, partitions)].append(key)
    return list(found.items())


_KINDS = {"window": ChangelogKind.WINDOWED}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_entries_show_the_layout_of_their_keys(layout: str) -> None:
    kind = _KINDS.get(layout, ChangelogKind.KEY_VALUE)
    assert find_layouts(kind, _keys(layout, 60, 3), 3) == (LAYOUTS[layout],)
    if len(find_layouts(kind, [], 3)) == 1:
        assert find_layouts(kind, _keys(layout, 4, 3), 3) != (LAYOUTS[layout],)


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        ("outer-join", "paid-left-shared-join-store"),
        ("outer-join", "KSTREAM-OUTERSHARED-0000000012-store"),
        ("subscription", "owner-subscription-store"),
    ],
)
def test_names_of_kafka_streams_show_the_layout_of_few_entries(layout: str, name: str) -> None:
    assert find_layouts(ChangelogKind.KEY_VALUE, _keys(layout, 3, 2), 2, name) == (LAYOUTS[layout],)
    wrong = [(1 - partition, keys) for partition, keys in _keys(layout, 60, 2)]
    assert LAYOUTS[layout] not in find_layouts(ChangelogKind.KEY_VALUE, wrong, 2, name)


def test_few_entries_and_one_partition_show_no_layout() -> None:
    assert len(find_layouts(ChangelogKind.KEY_VALUE, _keys("key", 60, 1), 1)) > 1
    assert len(find_layouts(ChangelogKind.KEY_VALUE, _keys("key", 3, 2), 2)) > 1
    wrong = [(1 - partition, keys) for partition, keys in _keys("key", 60, 2)]
    assert find_layouts(ChangelogKind.KEY_VALUE, wrong, 2) == ()


@pytest.mark.parametrize(
    ("renames", "reason"),
    [
        ([("app-a-changelog", "app-b-changelog")], "the application has no such internal topic"),
        ([("app-a-changelog", "app-totals-changelog")], "app-a-changelog does not exist"),
        ([("app-totals-changelog", "app-totals-changelog")], "is still a topic of the application"),
        ([("app-wide-changelog", "app-totals-changelog")], "has 4 partitions, the new topic 2"),
        ([("app-old-changelog", "app-totals-changelog")] * 2, "a topic is named twice"),
        ([("other-old-changelog", "app-totals-changelog")], "other-old-changelog is not a topic of app"),
        ([("app-old-repartition", "app-totals-changelog")], "only one of app-old-repartition and"),
    ],
)
def test_renames_that_do_not_fit_are_refused(renames: list[tuple[str, str]], reason: str) -> None:
    (document,) = load_text(
        json.dumps({"application": {"id": "app"}, "topology": _COUNT}), "a.yaml"
    ).documents
    old = ("app-old-changelog", "app-old-repartition", "other-old-changelog")
    counts = {"in": 2, "app-totals-changelog": 2, "app-wide-changelog": 4, **dict.fromkeys(old, 2)}
    compiled = compile_document(document, counts)
    assert [topic.kind for topic in compiled.internal_topics] == [TopicKind.CHANGELOG]
    _, problems = plan_copies(renames, compiled, counts)
    assert reason in problems[-1].summary
    copies, problems = plan_copies([("app-old-changelog", "app-totals-changelog")], compiled, counts)
    assert ([each.source for each in copies], problems) == (["app-old-changelog"], ())


@pytest.mark.parametrize(
    "clocks",
    [
        {"headwater.reshard.offsets": 0},
        {"headwater.reshard.offsets": 0, "headwater.reshard.started": 1},
        {
            "headwater.reshard.offsets": 0,
            "headwater.reshard.started": 1,
            "headwater.reshard.phase": 0,
            "headwater.reshard.before/app-totals-changelog": 4,
            "headwater.reshard.after/app-totals-changelog": 2,
        },
    ],
)
def test_a_journal_that_others_have_written_is_refused(clocks: dict[str, int]) -> None:
    text = OffsetMetadata(0, clocks).encode(-1, mark=MoveMark(MovePhase.COPY, 2, 4))
    with pytest.raises(ValueError, match="journal"):
        read_journal({("app-totals-changelog", 0): Committed(0, text)})
