"""A stop does not wait for a thread whose request is not answered; final states have no successor."""

from threading import Event

from headwater_spark.driver.client_lifecycle import ClientLifecycle, WatchThreads
from headwater_spark.driver.states import ClientState

_LONG_SECONDS = 60.0


def test_join_returns_the_threads_that_wait_for_an_answer() -> None:
    lifecycle, answer = ClientLifecycle("shop"), Event()

    def await_answer(_: Event) -> None:
        answer.wait()

    def await_stop(stopped: Event) -> None:
        stopped.wait()

    watches = WatchThreads({"ends": await_stop, "waits": await_answer}, lifecycle)
    watches.start()
    lifecycle.stopping.set()
    assert watches.join(0.2) == ["waits"]
    answer.set()
    assert watches.join(_LONG_SECONDS) == []


def test_a_failure_stops_the_client_and_the_others_end() -> None:
    lifecycle = ClientLifecycle("shop")

    def fail(_: Event) -> None:
        raise ValueError("no answer")

    def await_stop(stopped: Event) -> None:
        stopped.wait()

    watches = WatchThreads({"fails": fail, "continues": await_stop}, lifecycle)
    watches.start()
    assert lifecycle.stopping.wait(_LONG_SECONDS)
    assert watches.join(_LONG_SECONDS) == []
    assert lifecycle.state is ClientState.PENDING_ERROR
    assert [problem.found for problem in lifecycle.problems] == ["no answer"]


def test_the_end_of_spark_is_a_problem_of_its_own_and_the_first_one_remains() -> None:
    lifecycle = ClientLifecycle("shop")
    lifecycle.stop_because_of(ConnectionError("refused"))
    lifecycle.stop_because_of(ValueError("a consequence"))
    assert [problem.found for problem in lifecycle.problems] == ["refused"]
    assert "Spark" in lifecycle.problems[0].summary


def test_a_final_state_is_awaited_and_never_left() -> None:
    lifecycle = ClientLifecycle("shop")
    assert not lifecycle.wait_until_final(0)
    lifecycle.change_state(ClientState.PENDING_SHUTDOWN)
    lifecycle.change_state(ClientState.NOT_RUNNING)
    lifecycle.change_state(ClientState.RUNNING)
    assert lifecycle.wait_until_final(0)
    assert lifecycle.state is ClientState.NOT_RUNNING


def test_threads_that_were_not_started_have_ended() -> None:
    assert WatchThreads({"idle": lambda _: None}, ClientLifecycle("shop")).join(0) == []


def test_final_states_have_no_successor() -> None:
    for final in (ClientState.NOT_RUNNING, ClientState.ERROR):
        assert final.is_final
        assert not any(final.may_become(state) for state in ClientState)
