"""When a JVM that does not answer makes a query count as stalled."""

from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.queries.progress import Progress, ProgressWatch
from headwater_spark.driver.queries.stall import MOST_SILENT_SECONDS, waits_for_jvm
from headwater_spark.driver.spark_session import jvm
from headwater_spark.driver.spark_session.jvm import JvmWatch
from headwater_spark.driver.states import QueryState

_SECONDS = 90.0
_LIMIT = 300.0


@attrs.define
class _Jvm:
    """Answers while `answers` is set, as long as the test runs."""

    answers: Event = attrs.field(factory=Event)
    requests: int = 0

    def ask(self) -> int:
        self.requests += 1
        self.answers.wait(_SECONDS)
        return self.requests


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(jvm, "_ASK_SECONDS", 0.005)


@pytest.mark.usefixtures("quick")
def test_a_jvm_is_silent_from_its_last_answer_to_the_next_one() -> None:
    jvm, stopping = _Jvm(), Event()
    watch = JvmWatch(ask=jvm.ask)
    jvm.answers.set()

    thread = Thread(target=watch.run, args=(stopping,))
    thread.start()
    try:
        assert until(lambda: jvm.requests > 2, _SECONDS)
        jvm.answers.clear()
        assert until(lambda: watch.silent_seconds > 0.2, _SECONDS)
        asked = jvm.requests
        assert until(lambda: watch.silent_seconds > 0.4, _SECONDS)
        assert jvm.requests == asked, "one request is enough"
        jvm.answers.set()
        assert until(lambda: watch.silent_seconds == 0, _SECONDS)
    finally:
        jvm.answers.set()
        stopping.set()
        thread.join(_SECONDS)
    assert not thread.is_alive()


def test_time_in_which_the_process_was_paused_does_not_count() -> None:
    now = 100.0
    watch = JvmWatch(ask=lambda: None, clock=lambda: now)
    with capture_logs() as logs:
        for _ in range(4):
            now += 1.0
            watch.observe()
        assert watch.silent_seconds == 4
        assert not logs
        now += 10_000
        watch.observe()
        assert watch.silent_seconds == 6
        now += 1.0
        watch.observe()
    assert [line["event"] for line in logs] == ["Spark's JVM does not answer"]


@pytest.mark.parametrize(
    ("state", "silent", "limit", "waits"),
    [
        (QueryState.WAITING, MOST_SILENT_SECONDS, _LIMIT, True),
        (QueryState.STARTING, MOST_SILENT_SECONDS, _LIMIT, True),
        (QueryState.WAITING, MOST_SILENT_SECONDS - 1, _LIMIT, False),
        (QueryState.WAITING, 4.0, 4.0, True),
        (QueryState.WAITING, 0.0, 4.0, False),
        # Its records are counted, and without records it has nothing to do.
        (QueryState.RUNNING, 1_000.0, _LIMIT, False),
        (QueryState.STOPPED, 1_000.0, _LIMIT, False),
        (QueryState.FAILED, 1_000.0, _LIMIT, False),
    ],
)
def test_a_query_that_has_to_start_waits_for_the_jvm(
    state: QueryState, silent: float, limit: float, *, waits: bool
) -> None:
    assert waits_for_jvm(state, silent, limit) is waits


def test_a_query_that_waits_for_its_restart_is_stalled_while_the_jvm_hangs() -> None:
    """No observation is needed: the client's thread itself waits for the JVM."""
    query = SimpleNamespace(state=QueryState.WAITING, restarts=1, restart_in=0.0)
    silence = 0.0
    watch = ProgressWatch(
        queries={"0": cast("Any", query)}, limit_seconds=_LIMIT, jvm_silence=lambda: silence
    )
    progress = Progress()
    assert watch.reason(progress) == ""
    silence = 31.0
    expected = "Sub-topology 0 waits for Spark's JVM, which has not answered for 31 s."
    assert watch.reason(progress) == expected
    assert watch.status("0", progress)["stalled"]
    silence = 0.0
    assert watch.reason(progress) == ""
    assert not watch.status("0", progress)["stalled"]
