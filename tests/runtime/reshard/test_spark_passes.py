"""A reshard as jobs of Spark: tasks that are lost, repeated and late, drivers that are killed.

The jobs run in this process, with a cluster in memory; `test_spark_jobs` runs jobs of Spark.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard import entry_passes, share_tasks
from headwater_spark.driver.reshard.checks import find_journal
from headwater_spark.driver.reshard.entry_move import EntryMove
from headwater_spark.driver.reshard.journal import Journal, Phase, read_journal
from headwater_spark.driver.reshard.plan import MOST_WRITERS, WRITERS, Reshard, worker_names
from headwater_spark.driver.reshard.share_tasks import (
    Answer,
    CheckPass,
    Failure,
    MovePass,
    Pass,
    Result,
)
from headwater_spark.driver.reshard.spark_passes import SparkPasses
from headwater_spark.engine.partitioners.hashing import PartitionerError, UserPartitioner, default_partition
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS
from headwater_spark.engine.scaling.transfers import Transfer
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.memory_jobs import Fate, MemoryJobs, PausedTask
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster
from tests.runtime.reshard.resharded_application import (
    DOCUMENT,
    LAYOUT_OF,
    Application,
    application,
    expected_entries,
    inputs,
)

_CONNECTION = Connection(bootstrap_servers=("localhost:1",))
_AFTER = inputs((5, 4, 3))


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks use the cluster in memory that `_application` has created."""
    monkeypatch.setattr(share_tasks, "KafkaMoveCluster", lambda *_: _Present.cluster)


class _Present:
    cluster: ReshardMemoryCluster


def _application(seed: int = 1) -> Application:
    app = application(inputs((3, 2, 2)), seed)
    app.write_entries(20)
    _Present.cluster = app.cluster
    return app


def _executor(jobs: MemoryJobs, tasks: int) -> SparkPasses:
    return SparkPasses(_CONNECTION, "app", tasks, jobs.run)


def _journal(app: Application) -> Journal | None:
    return find_journal(DOCUMENT, app.counts, app.cluster)


@pytest.mark.parametrize("tasks", [pytest.param(1, marks=pytest.mark.slow), 2, 7])
def test_jobs_do_what_one_process_does(tasks: int) -> None:
    alone, app = _application(), _application()
    expected = expected_entries(app, _AFTER)
    jobs = MemoryJobs(app.cluster)
    app.reshard(_AFTER, _executor(jobs, tasks))
    alone.reshard(_AFTER)
    assert app.live() == alone.live() == expected
    assert app.counts == alone.counts
    shares = {what: len(shares) for what, shares in jobs.jobs}
    assert shares["copying entries of app-totals-changelog"] == min(tasks, 3), "they have old partitions"
    assert shares["checking entries of app-totals-changelog"] == min(tasks, 5)
    assert shares["copying entries of app-owner-subscription-store-changelog"] == 1


@settings(max_examples=max(4, settings().max_examples // 4), deadline=None)
@given(
    st.integers(0, 2**16),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 6)), max_size=6),
    st.sampled_from([0.0, 0.1, 0.3]),
)
def test_lost_tasks_and_killed_drivers_lose_nothing(
    seed: int, executions: list[tuple[int, int]], losses: float
) -> None:
    """Each execution has another number of tasks, or none, and is killed after some operations."""
    app, chance = _application(seed), random.Random(seed)  # noqa: S311
    expected = expected_entries(app, _AFTER)
    fates = [fate for fate in Fate if fate is not Fate.DONE]
    jobs = MemoryJobs(
        app.cluster, lambda: chance.choice(fates) if chance.random() < losses else Fate.DONE, chance
    )
    for operations, tasks in executions:
        app.cluster.kill_after(operations)
        try:
            app.reshard(_AFTER, _executor(jobs, tasks) if tasks else None)
        except KilledError:
            app.cluster.kill_after(None)
            if operations % 3 == 0:
                for store in LAYOUT_OF:
                    app.cluster.compact(f"app-{store}-changelog")
        except KafkaException:
            assert losses
        app.cluster.kill_after(None)
        jobs.run_late()
    jobs.fate = lambda: Fate.DONE
    app.reshard(_AFTER, _executor(jobs, 3))
    jobs.run_late()
    assert app.live() == expected


_METHODS = ("copying entries", "deleting copied", "deleting an", "checking", "reading")


def _marks_of_share(fate: int, method: int) -> tuple[pytest.MarkDecorator, ...]:
    if method == 0:
        return ()
    return (pytest.mark.slow if method == fate else pytest.mark.soak,)


@pytest.mark.parametrize(
    ("method", "fate"),
    [
        # `make check` has each fate of a copy, `make test` also each method.
        pytest.param(method, fate, marks=_marks_of_share(at, number))
        for at, fate in enumerate(each for each in Fate if each is not Fate.DONE)
        for number, method in enumerate(_METHODS)
    ],
)
def test_a_share_is_executed_again(fate: Fate, method: str) -> None:
    app = _application()
    expected = expected_entries(app, _AFTER)
    jobs, seen = MemoryJobs(app.cluster), set[str]()

    def first_of_method() -> Fate:
        what, _ = jobs.jobs[-1]
        if not what.startswith(method) or what in seen:
            return Fate.DONE
        seen.add(what)
        return fate

    jobs.fate = first_of_method
    app.reshard(_AFTER, _executor(jobs, 3))
    jobs.run_late()
    assert seen
    assert app.live() == expected
    if method == "copying entries":
        topic = "app-totals-changelog"
        own = [(what, shares) for what, shares in jobs.jobs if topic in what]
        [first, second] = [at for at, (what, _) in enumerate(own) if what.startswith(method)]
        assert len(own[first][1]) == 3
        assert len(own[second][1]) == 1, "only the share that has failed is copied again"
        assert own[first + 1] == (f"deleting an interrupted copy of {topic}", [0, 1, 2])


@pytest.mark.parametrize(
    "operations",
    # 3 is the last one before the commit.
    [
        1,
        pytest.param(3, marks=pytest.mark.slow),
        5,
        *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 4)),
    ],
)
def test_a_task_that_continues_later_cannot_write(operations: int) -> None:
    """It is paused before or after it has opened its producer, while Spark and the driver repeat it."""
    app = _application()
    expected = expected_entries(app, _AFTER)
    jobs, paused = MemoryJobs(app.cluster), PausedTask(app.cluster, operations)
    is_paused = False

    def run(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
        nonlocal is_paused
        if what != "copying entries of app-totals-changelog" or is_paused:
            return jobs.run(what, request, shares)
        is_paused = True
        paused.start(request, 0)
        return {**jobs.run(what, request, shares[1:]), 0: share_tasks.run_share(request, 0, 1)}

    executor = SparkPasses(_CONNECTION, "app", 3, run)
    app.reshard(_AFTER, executor)
    before = {topic: [len(each) for each in parts] for topic, parts in app.cluster.topics.items()}
    answer = paused.continue_()
    assert isinstance(answer, Failure) or operations > 3, "it had committed all"
    assert before == {topic: [len(each) for each in parts] for topic, parts in app.cluster.topics.items()}
    assert app.live() == expected


@pytest.mark.parametrize("operations", [1, *(pytest.param(each, marks=pytest.mark.soak) for each in (2, 3))])
def test_a_task_that_continues_in_a_later_pass_cannot_write(operations: int) -> None:
    """The round that began when the copy was repeated is still the present one."""
    app, topic = _application(), "app-totals-changelog"
    expected = expected_entries(app, _AFTER)
    jobs, paused, answers = MemoryJobs(app.cluster), PausedTask(app.cluster, operations), list[Answer]()
    is_paused = False

    def run(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
        nonlocal is_paused
        if what == f"copying entries of {topic}" and not is_paused:
            is_paused = True
            paused.start(request, 0)
            return {**jobs.run(what, request, shares[1:]), 0: share_tasks.run_share(request, 0, 1)}
        if what == f"deleting copied entries of {topic}" and not answers:
            answers.append(paused.continue_())
        return jobs.run(what, request, shares)

    app.reshard(_AFTER, SparkPasses(_CONNECTION, "app", 3, run))
    [answer] = answers
    assert isinstance(answer, Failure), answer
    assert app.live() == expected


def test_a_task_never_adds_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the partitions that the driver has added; without them, it fails and may be repeated."""
    app = _application()
    request = _copy_pass()
    monkeypatch.setattr(entry_passes, "_VISIBLE_SECONDS", 0.0)
    assert share_tasks.run_share(request, 0, 0) == Failure(
        "app-totals-changelog has 3 partitions instead of 5"
    )
    assert len(app.cluster.topics["app-totals-changelog"]) == 3
    monkeypatch.undo()
    monkeypatch.setattr(share_tasks, "KafkaMoveCluster", lambda *_: app.cluster)
    waits: list[float] = []

    def expand(seconds: float) -> None:
        waits.append(seconds)
        app.cluster.expand({"app-totals-changelog": 5})

    monkeypatch.setattr(entry_passes, "time", SimpleNamespace(sleep=expand, monotonic=time.monotonic))
    assert share_tasks.run_share(request, 0, 0) == Failure("another client executes it")
    assert len(waits) == 1


def test_a_share_that_fails_again_and_again_ends_the_reshard_which_can_be_continued() -> None:
    app = _application()
    expected = expected_entries(app, _AFTER)
    jobs = MemoryJobs(app.cluster)

    def fail_copies() -> Fate:
        return Fate.FAILED if jobs.jobs[-1][0].startswith("copying") else Fate.DONE

    jobs.fate = fail_copies
    with pytest.raises(KafkaException, match="brokers do not answer"):
        app.reshard(_AFTER, _executor(jobs, 3))
    assert len([what for what, _ in jobs.jobs if what.startswith("copying")]) == 4
    app.reshard(_AFTER)
    assert app.live() == expected


def test_a_pass_is_repeated_as_long_as_shares_complete() -> None:
    """With many tasks that take long, more executors are lost than a fixed number of attempts allows."""
    request, reports = _copy_pass(), list[str]()

    def complete_one(_: str, __: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
        return {**dict.fromkeys(shares, Failure("an executor has ended")), shares[0]: Result(shares[0])}

    passes = SparkPasses(_CONNECTION, "app", 9, complete_one, lambda what, *_: reports.append(what))
    assert passes.results("copying", request, range(9)) == [*range(9)]
    assert reports[0] == "copying: executing 8 of 9 shares again: an executor has ended"
    assert len(reports) == 8


def test_a_job_of_a_lost_executor_keeps_the_results_of_the_other_tasks() -> None:
    """Spark must not give up the job. A share that only reads is repeated by Spark, but not without end."""
    assert isinstance(share_tasks.run_share(_check_pass(), 0, 3), Result)
    lost = Failure("Spark has repeated a task, because an executor or a Python worker has ended")
    assert share_tasks.run_share(_check_pass(), 0, 4) == lost
    assert share_tasks.run_share(_copy_pass(), 0, 1) == lost


def test_the_next_execution_fences_all_writers_of_earlier_executions() -> None:
    app = _application()
    jobs = MemoryJobs(app.cluster)

    def killed(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
        if what.startswith("copying"):
            raise KilledError
        return jobs.run(what, request, shares)

    with pytest.raises(KilledError):
        app.reshard(_AFTER, SparkPasses(_CONNECTION, "app", 9, killed))
    found = _journal(app)
    assert found is not None
    assert (found.writers, found.round > 0) == (9, True)
    fenced: list[str] = []
    fence = app.cluster.fence

    def fence_and_end(names: Sequence[str]) -> None:
        fenced.extend(names)
        fence(names)
        raise KilledError

    app.cluster.fence = fence_and_end  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        app.reshard(_AFTER)
    assert fenced == list(worker_names("app", 9))
    again = _journal(app)
    assert again is not None
    assert again.writers == 9
    assert again.round not in (0, found.round)


def test_journals_without_writers_are_read_and_impossible_ones_refused() -> None:
    journal = Journal({"t": (1, 2)}, {("t", 0): 7}, {"t": Phase.COPY}, writers=12, round=2**62)
    committed = {each: Committed(*commit) for each, commit in journal.commits("t").items()}
    assert read_journal(committed) == journal
    known = attrs.evolve(journal, writers=MOST_WRITERS + 1)
    with pytest.raises(ValueError, match="number of writers"):
        read_journal({each: Committed(*commit) for each, commit in known.commits("t").items()})
    from headwater.model.offset_metadata import MoveMark, MovePhase, OffsetMetadata  # noqa: PLC0415

    names = ("phase", "offsets", "started", "locked", "before/t", "after/t")
    clocks = {
        f"headwater.reshard.{name}": value for name, value in zip(names, (0, 0, 1, 1, 1, 2), strict=True)
    }
    text = OffsetMetadata(0, clocks).encode(-1, mark=MoveMark(MovePhase.COPY, 1, 2))
    earlier = read_journal({("t", 0): Committed(7, text)})
    assert earlier is not None
    assert (earlier.writers, earlier.round) == (WRITERS, 0)


def test_refusals_of_tasks_are_raised() -> None:
    app = _application()
    wrong = (default_partition(b"key 1", 3) + 1) % 3
    app.cluster.write([("app-totals-changelog", wrong, b"key 1", b"value", 1, ())])
    with pytest.raises(ProblemsError) as raised:
        app.reshard(_AFTER, _executor(MemoryJobs(app.cluster), 3))
    assert [problem.code for problem in raised.value.problems] == [ProblemCode.MISPLACED_ENTRIES]
    assert _journal(app) is None


_TRANSFER = Transfer(
    "app-totals-changelog",
    "app-totals-changelog",
    3,
    5,
    LAYOUTS["key"].moved_store("totals", "app-totals-changelog"),
)


def _copy_pass() -> MovePass:
    return MovePass(
        connection=_CONNECTION,
        application="app",
        method="copy",
        transfer=_TRANSFER,
        ends={},
        limit=None,
        shares=1,
        location=("t", 0),
        round=1,
    )


def _check_pass() -> CheckPass:
    _application()
    return CheckPass(connection=_CONNECTION, reshard=Reshard("app", (_TRANSFER,), (), {}), shares=1)


def _check(transfer: Transfer, jobs: MemoryJobs) -> None:
    assert _executor(jobs, 2).check_entries(Reshard("app", (transfer,), (), {})) == []


def test_executors_import_the_function_of_a_user() -> None:
    app = _application()
    name = f"{default_partition.__module__}:{default_partition.__name__}"

    def not_sent(key: bytes, partitions: int) -> int:
        raise AssertionError((key, partitions))

    _check(attrs.evolve(_TRANSFER, partitioner=UserPartitioner(name, not_sent)), MemoryJobs(app.cluster))
    unknown = attrs.evolve(_TRANSFER, partitioner=UserPartitioner("absent_parts:region", not_sent))
    with pytest.raises(PartitionerError, match="an executor cannot import it: ModuleNotFoundError"):
        _check(unknown, MemoryJobs(app.cluster))


@pytest.mark.parametrize("tasks", [0, -1, MOST_WRITERS + 1])
def test_impossible_numbers_of_tasks_are_refused(tasks: int) -> None:
    with pytest.raises(ValueError, match="'writers' must be"):
        SparkPasses(_CONNECTION, "app", tasks, lambda *_: {})


def test_any_failure_of_a_task_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    request = _check_pass()

    def failing(error: Exception) -> Callable[..., object]:
        def fail(*_: object) -> object:
            raise error

        return fail

    fenced = KafkaException(KafkaError(KafkaError.PRODUCER_FENCED, "fenced"))
    for error, expected in (
        (fenced, Failure("fenced", KafkaError.PRODUCER_FENCED)),
        (TypeError("wrong type"), Failure("a task failed: TypeError: wrong type")),
    ):
        monkeypatch.setattr(share_tasks, "KafkaMoveCluster", failing(error))
        assert share_tasks.run_share(request, 0, 0) == expected


def test_copies_of_some_partitions_are_deleted_in_their_own_topic_only() -> None:
    """Records of another topic may be copies of any partition."""
    app = _application()
    transfer = attrs.evolve(_TRANSFER, target="app-copies-changelog")
    move = EntryMove(transfer, app.cluster, {0: 1}, None, report_no_progress)
    with (
        app.cluster.producer("app") as producer,
        pytest.raises(ValueError, match="app-copies-changelog: copies of some partitions"),
    ):
        move.delete_leftovers(producer, frozenset({0}))


def test_the_text_of_a_pass_has_no_secrets() -> None:
    secret = attrs.evolve(_CONNECTION, password="quail-password")
    assert "quail" not in repr(attrs.evolve(_copy_pass(), connection=secret))
