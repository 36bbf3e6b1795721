"""Which failures of a query mean an outage of the brokers, and how a query waits in one."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from headwater.kafka.answering_broker import BrokerAnswer
from headwater_spark.driver import outages
from headwater_spark.driver.captured_failures import capture_failure
from headwater_spark.driver.failures import RestartPolicy
from headwater_spark.driver.outages import Brokers, OutageWait, outage_answer

_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "transaction.py", line 1, in commit
    self._call("commit", self._producer.commit_transaction)
{}
on stream thread shop-StreamThread-1
"""
_EXECUTOR = """An error occurred while calling o12.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 5.0 failed 4 times: {}
\tat org.apache.spark.sql.kafka010.KafkaBatchPartitionReader.next(KafkaBatchPartitionReader.scala:1)
"""
_DRIVER = "[STREAM_FAILED] Query [id = 1] terminated with exception: {} SQLSTATE: XXKST"
_KAFKA = "org.apache.kafka.common.errors"
_NO_ANSWER = KafkaException(KafkaError(KafkaError._TRANSPORT))


def _in_worker(code: int, name: str = "cimpl.KafkaException") -> RuntimeError:
    return RuntimeError(_WORKER.format(f"{name}: {KafkaError(code)}"))


_OUTAGES = (
    # What librdkafka says while no broker answers, in the driver and in a worker.
    KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer within 30 s")),
    _NO_ANSWER,
    KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
    KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)),
    _in_worker(KafkaError._TIMED_OUT),
    _in_worker(KafkaError._MSG_TIMED_OUT),
    _in_worker(KafkaError.NOT_ENOUGH_REPLICAS),
    # Java's, in Spark's connector.
    RuntimeError(_DRIVER.format(f"{_KAFKA}.TimeoutException: Timed out waiting for a node assignment.")),
    RuntimeError(_DRIVER.format(f"{_KAFKA}.CoordinatorNotAvailableException: no")),
    RuntimeError("Timed out waiting for a node assignment. Call: listNodes\n=== Streaming Query ==="),
    RuntimeError("Call(callName=listOffsets, deadlineMs=1, tries=1) timed out at 2 after 1 attempt(s)\n==="),
    RuntimeError(_EXECUTOR.format(f"{_KAFKA}.TimeoutException: Timeout of 60000ms expired before")),
    RuntimeError(
        _EXECUTOR.format(
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 milliseconds"
        )
    ),
)
_OTHERS = (
    # Credentials, certificates and permissions.
    KafkaException(KafkaError(KafkaError._AUTHENTICATION)),
    KafkaException(KafkaError(KafkaError._SSL)),
    _in_worker(KafkaError.TOPIC_AUTHORIZATION_FAILED),
    _in_worker(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    RuntimeError(_DRIVER.format(f"{_KAFKA}.SslAuthenticationException: SSL handshake failed")),
    RuntimeError(f"{_KAFKA}.TimeoutException: no\nCaused by: {_KAFKA}.SaslAuthenticationException: no"),
    # Records, code, and other time-outs.
    _in_worker(KafkaError.MSG_SIZE_TOO_LARGE),
    _in_worker(KafkaError._TIMED_OUT, "headwater_spark.worker.record_sender.RecordsRefusedError"),
    KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True)),
    KafkaException(KafkaError(KafkaError._TIMED_OUT, "a fatal error", fatal=True)),
    RuntimeError(_WORKER.format(f"ValueError: record {_KAFKA}.TimeoutException: no")),
    RuntimeError(_WORKER.format(f"shop.EnrichError: {KafkaError(KafkaError._TIMED_OUT)}")),
    RuntimeError(_EXECUTOR.format("java.util.concurrent.TimeoutException: Futures timed out")),
    TimeoutError("timed out"),
    None,
)


@pytest.mark.parametrize("answer", list(BrokerAnswer))
@pytest.mark.parametrize("failure", _OUTAGES)
def test_a_missing_answer_of_brokers_that_refuse_nothing_is_an_outage(
    failure: Exception, answer: BrokerAnswer
) -> None:
    """A coordinator may be stopped while other brokers answer."""
    expected = None if answer is BrokerAnswer.REFUSED else answer
    assert outage_answer(capture_failure(failure), lambda: answer) is expected


@pytest.mark.parametrize("failure", _OTHERS)
def test_other_failures_are_no_outage_and_ask_no_broker(failure: Exception | None) -> None:
    captured = None if failure is None else capture_failure(failure)
    assert outage_answer(captured, lambda: pytest.fail("asked")) is None


def _brokers(*answers: BrokerAnswer, is_awaited: bool = True) -> Brokers:
    restarts = RestartPolicy(max_failures=1, first_backoff_ms=100, max_backoff_ms=500)
    return Brokers(
        ask=iter(answers).__next__,
        restarts=restarts,
        partial_seconds=300.0,
        is_awaited=is_awaited,
        known_seconds=0.0,
    )


_SILENT = BrokerAnswer.NONE


def test_the_pauses_grow_until_a_broker_answers_and_a_query_commits() -> None:
    wait = OutageWait("query", _brokers(*[_SILENT] * 5, *[BrokerAnswer.ANSWERED] * 3))
    pauses = [wait.begin(capture_failure(_NO_ANSWER)), *(wait.extend() for _ in range(5))]
    assert pauses == [100, 200, 400, 500, 500, None]
    assert wait.begin(capture_failure(_NO_ANSWER)) == 500, "it has not committed in between"
    wait.end()
    assert wait.begin(capture_failure(_NO_ANSWER)) == 100


def test_a_query_that_failed_for_another_reason_does_not_ask_the_brokers() -> None:
    wait = OutageWait("query", _brokers(_SILENT))
    assert wait.begin(capture_failure(_NO_ANSWER)) == 100
    assert wait.begin(capture_failure(ValueError("a bug"))) is None
    assert wait.extend() is None


def test_a_handler_of_uncaught_exceptions_decides_in_an_outage_too() -> None:
    wait = OutageWait("query", _brokers(is_awaited=False))
    assert wait.begin(capture_failure(_NO_ANSWER)) is None
    assert wait.extend() is None


def test_queries_that_fail_at_the_same_time_ask_the_brokers_once() -> None:
    asked: list[BrokerAnswer] = []

    def ask() -> BrokerAnswer:
        asked.append(_SILENT)
        return _SILENT

    brokers = Brokers(ask=ask, restarts=RestartPolicy(), partial_seconds=300.0, known_seconds=3_600.0)
    for wait in (OutageWait("0", brokers), OutageWait("1", brokers)):
        assert wait.begin(capture_failure(_NO_ANSWER)) == 200
        assert wait.extend() == 400
    assert len(asked) == 1


@pytest.fixture(name="clock")
def _clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(outages, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_a_long_outage_is_logged_at_a_low_rate(clock: SimpleNamespace) -> None:
    wait = OutageWait("query", _brokers(*[_SILENT] * 200))
    with capture_logs() as logs:
        wait.begin(capture_failure(_NO_ANSWER))
        for _ in range(120):
            clock.now += 30.0
            wait.extend()
    assert [line["seconds"] for line in logs] == list(range(300, 3_601, 300))


def test_failures_count_if_a_broker_answers_for_longer_than_the_timeout_of_a_task(
    clock: SimpleNamespace,
) -> None:
    """The executors may not reach the brokers, or the brokers name addresses that are not reachable."""
    wait = OutageWait("query", _brokers(_SILENT, *[BrokerAnswer.ANSWERED] * 12))
    found = []
    for _ in range(13):
        found.append(wait.begin(capture_failure(_NO_ANSWER)) is not None)
        clock.now += 30.0
    assert found == [True] * 11 + [False] * 2, "300 s after the first answer"


def test_the_time_of_a_partial_outage_begins_again_when_records_are_committed(clock: SimpleNamespace) -> None:
    wait = OutageWait("query", _brokers(*[BrokerAnswer.ANSWERED] * 2))
    assert wait.begin(capture_failure(_NO_ANSWER)) == 100
    clock.now += 400.0
    wait.end()
    assert wait.begin(capture_failure(_NO_ANSWER)) == 100


def test_a_failure_long_after_the_last_one_begins_a_new_outage(clock: SimpleNamespace) -> None:
    """No record may have been committed in between: there was none."""
    wait = OutageWait("query", _brokers(*[_SILENT] * 3))
    assert [wait.begin(capture_failure(_NO_ANSWER)), wait.extend()] == [100, 200]
    clock.now += 86_400.0
    assert wait.begin(capture_failure(_NO_ANSWER)) == 100
