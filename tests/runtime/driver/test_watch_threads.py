"""A stop does not wait for a thread whose request is not answered."""

from threading import Event

from headwater_spark.driver.watch_threads import WatchThreads

_LONG_SECONDS = 60.0


def test_join_returns_the_threads_that_wait_for_an_answer() -> None:
    stopping, answer = Event(), Event()

    def await_answer(_: Event) -> None:
        answer.wait()

    def await_stop(stopped: Event) -> None:
        stopped.wait()

    watches = WatchThreads({"ends": await_stop, "waits": await_answer}, stopping, on_failure=_unexpected)
    watches.start()
    stopping.set()
    assert watches.join(0.2) == ["waits"]
    answer.set()
    assert watches.join(_LONG_SECONDS) == []


def test_a_failure_is_reported_and_the_others_continue() -> None:
    stopping, reported = Event(), Event()
    failures: list[Exception] = []

    def fail(_: Event) -> None:
        raise ConnectionError("refused")

    def await_stop(stopped: Event) -> None:
        stopped.wait()

    def report(failure: Exception) -> None:
        failures.append(failure)
        reported.set()

    watches = WatchThreads({"fails": fail, "continues": await_stop}, stopping, on_failure=report)
    watches.start()
    assert reported.wait(_LONG_SECONDS)
    assert [str(failure) for failure in failures] == ["refused"]
    assert "continues" in watches.join(0)
    stopping.set()
    assert watches.join(_LONG_SECONDS) == []


def test_threads_that_were_not_started_have_ended() -> None:
    assert WatchThreads({"idle": lambda _: None}, Event(), on_failure=_unexpected).join(0) == []


def _unexpected(failure: Exception) -> None:
    raise AssertionError(failure)
