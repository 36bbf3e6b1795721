"""How often a client asks Spark whether its queries are active."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka.answering_broker import BrokerAnswer
from headwater_spark.driver.captured_failures import capture_failure
from headwater_spark.driver.failures import Failure, RestartPolicy
from headwater_spark.driver.outages import Brokers
from headwater_spark.driver.queries import query as module
from headwater_spark.driver.queries.query import BatchFailedError, SubtopologyQuery
from headwater_spark.driver.states import QueryState


@attrs.define
class _StreamingQuery:
    """The query of Spark, which counts the calls."""

    is_active: bool = True
    message: str = "Initializing sources"
    calls: int = 0

    @property
    def isActive(self) -> bool:  # noqa: N802 - PySpark's name
        self.calls += 1
        return self.is_active

    @property
    def status(self) -> dict[str, str]:
        return {"message": self.message}

    def exception(self) -> Exception:
        return RuntimeError("no leader")


@attrs.define
class _Spec:
    name: str = "query"
    backoffs: list[int | None] = attrs.field(factory=list)
    answer: BrokerAnswer = BrokerAnswer.ANSWERED
    brokers: Brokers = attrs.field(init=False)
    native_program = None

    def __attrs_post_init__(self) -> None:
        self.brokers = Brokers(
            ask=lambda: self.answer, restarts=RestartPolicy(), partial_seconds=300.0, known_seconds=0.0
        )

    @property
    def batches(self) -> "_Spec":
        return self

    def handle_failure(
        self, failure: Failure, _thread: str, failures_in_a_row: int, outage_ms: int | None
    ) -> int | None:
        if outage_ms is not None:
            return outage_ms
        self.backoffs.append(RestartPolicy(max_failures=3).backoff_ms(failure.exception, failures_in_a_row))
        return self.backoffs[-1]


@attrs.define
class _Batches:
    """Fails each batch; until then, a batch reads the records of one step after the other."""

    on_commit: Callable[[], None] = lambda: None
    committed_steps: int = 0
    failed_thread: str = ""
    thread_names: tuple[str, ...] = ()
    failure: Exception = attrs.field(factory=lambda: RuntimeError("poison record"))

    def __call__(self, *_: object) -> None:
        for _step in range(self.committed_steps):
            self.on_commit()
        raise self.failure


@attrs.define
class _Polled:
    query: SubtopologyQuery
    spark: _StreamingQuery
    spec: _Spec
    now: float = 100.0

    def poll(self, seconds: float) -> QueryState:
        """Poll every tenth of a second for `seconds`."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.query.poll()
        return self.query.state


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch) -> _Polled:
    spec = _Spec()
    query = SubtopologyQuery(cast("Any", None), cast("Any", spec))
    found = _Polled(query, _StreamingQuery(), spec)
    query._query = cast("Any", found.spark)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_start_of_a_query_is_noticed_at_the_next_poll(polled: _Polled) -> None:
    assert polled.poll(1.0) is QueryState.STARTING
    assert polled.spark.calls == 10
    polled.spark.message = "Waiting for data to arrive"
    assert polled.poll(0.1) is QueryState.RUNNING


def test_running_query_is_checked_twice_per_second(polled: _Polled) -> None:
    polled.spark.message = "Waiting for data to arrive"
    polled.poll(0.1)
    polled.spark.calls = 0
    assert polled.poll(10.0) is QueryState.RUNNING
    assert 15 <= polled.spark.calls <= 20
    polled.spark.is_active = False
    assert polled.poll(0.6) is not QueryState.RUNNING


def test_failed_batch_is_noticed_at_the_next_poll(polled: _Polled) -> None:
    polled.spark.message = "Waiting for data to arrive"
    polled.poll(1.0)
    polled.query._process_batch = cast("Any", _Batches())
    with pytest.raises(BatchFailedError):
        polled.query._on_batch(cast("Any", None), 0)
    assert polled.poll(0.1) is QueryState.RUNNING, "Spark has not ended the query yet"
    polled.spark.is_active = False
    assert polled.poll(0.1) is not QueryState.RUNNING


def _fail_batches(
    polled: _Polled,
    number: int,
    committed_steps: int,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception | None = None,
) -> None:
    """Let as many batches fail, each after some of its steps; the query is restarted after each."""

    def start(query: SubtopologyQuery) -> None:
        query._state, query._has_failed_batch = QueryState.STARTING, False

    monkeypatch.setattr(SubtopologyQuery, "start", start)
    query = polled.query
    query._process_batch = cast("Any", _Batches(query._forget_failures, committed_steps))
    if failure is not None:
        query._process_batch.failure = failure  # type: ignore[attr-defined]  # the fake
    for _ in range(number):
        with pytest.raises(BatchFailedError):
            query._on_batch(cast("Any", None), 0)
        polled.spark.is_active = False
        polled.poll(0.1)
        polled.spark.is_active = True
        polled.poll(60.0)  # the pause before the restart


@pytest.mark.parametrize("steps", [1, 3])
def test_failures_between_which_steps_commit_are_not_in_a_row(
    polled: _Polled, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog of several topics is one batch, read in steps: it takes hours."""
    _fail_batches(polled, 10, steps, monkeypatch)
    assert polled.spec.backoffs == [200] * 10


def test_failures_without_a_committed_step_end_the_application(
    polled: _Polled, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_batches(polled, 4, 0, monkeypatch)
    assert polled.spec.backoffs == [200, 400, 800, None]
    assert polled.query.state is QueryState.FAILED


_NO_ANSWER = KafkaException(KafkaError(KafkaError._TRANSPORT))


def test_failures_in_an_outage_do_not_end_the_application(
    polled: _Polled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some brokers answer, and a coordinator does not: the query is restarted again and again."""
    _fail_batches(polled, 10, 0, monkeypatch, _NO_ANSWER)
    assert polled.query.restarts == 10
    assert polled.spec.backoffs == [], "no failure counts"
    _fail_batches(polled, 4, 0, monkeypatch)
    assert polled.spec.backoffs == [200, 400, 800, None], "a failure of the code still counts"


def test_a_refused_login_or_tls_connection_ends_the_application(
    polled: _Polled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka reports it as a missing answer, too."""
    polled.spec.answer = BrokerAnswer.REFUSED
    _fail_batches(polled, 4, 0, monkeypatch, _NO_ANSWER)
    assert polled.spec.backoffs == [200, 400, 800, None]
    assert polled.query.state is QueryState.FAILED


def test_a_query_is_not_started_while_no_broker_answers(
    polled: _Polled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses grow to half a minute; the brokers may refuse the login when they answer again."""
    polled.spec.answer = BrokerAnswer.NONE
    _fail_batches(polled, 1, 0, monkeypatch, _NO_ANSWER)
    assert polled.poll(3_600.0) is QueryState.WAITING
    assert polled.query.restarts == 0
    assert 0 < polled.query.restart_in <= 30.0
    polled.spec.answer = BrokerAnswer.REFUSED
    assert polled.poll(31.0) is QueryState.STARTING
    assert polled.query.restarts == 1


def test_a_failure_is_shown_until_a_step_commits(polled: _Polled) -> None:
    query = polled.query
    query._process_batch = cast("Any", _Batches())
    with pytest.raises(BatchFailedError):
        query._on_batch(cast("Any", None), 0)
    assert query.failure is not None
    assert query.failure.reason == "poison record"
    query._forget_failures()
    assert query.failure is None


def test_the_reason_is_that_of_the_last_failure(polled: _Polled) -> None:
    """Spark may end a restarted query before it has a batch."""
    polled.query._process_batch = cast("Any", _Batches())
    polled.query.failure = capture_failure(OSError("an earlier one"))
    polled.spark.is_active = False
    polled.poll(0.1)
    assert polled.query.failure.reason == "no leader"


def test_a_query_is_paused_with_the_renewal_of_its_offsets(polled: _Polled) -> None:
    """The topics that it reads may be re-created then: no task may commit any more."""
    calls: list[str] = []
    polled.query._process_batch = cast(
        "Any", SimpleNamespace(stop=lambda: calls.append("stop"), await_renewal=lambda: calls.append("await"))
    )
    polled.query._query = cast("Any", SimpleNamespace(stop=lambda: calls.append("stop Spark")))
    polled.query.pause()
    assert calls == ["stop", "stop Spark", "await"]
    assert polled.query.state is QueryState.STOPPED
