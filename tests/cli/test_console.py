"""What commands show while they wait, and how Ctrl-C ends a repeated one."""

import io
import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from headwater.cli.console import repeat_every, show_activity


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "is_shown"), [(_Terminal(), True), (io.StringIO(), False)])
def test_a_long_request_is_shown_only_on_a_terminal(
    stream: io.StringIO,
    *,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with show_activity("Reading the cluster"):
        pass
    assert ("Reading the cluster" in stream.getvalue()) is is_shown


class Interrupting:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def interrupt_soon() -> Iterator[Callable[[None], object]]:
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    yield lambda _: signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def count_until_interrupted(done: list[int]) -> None:
    for _ in repeat_every(0.01):
        done.append(len(done))
        if len(done) == 3:
            Interrupting()  # Python ignores the exception of its finalizer


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_in_a_finalizer_is_not_lost() -> None:
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        count_until_interrupted(done)
    assert len(done) == 3


def test_interrupt_while_waiting_ends_at_once(interrupt_soon: Callable[[None], object]) -> None:
    before, started = signal.getsignal(signal.SIGINT), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(map(interrupt_soon, repeat_every(60)))
    assert time.monotonic() - started < 30
    assert signal.getsignal(signal.SIGINT) is before
