"""What commands show while they wait."""

import io
import sys

import pytest

from headwater.cli.console import showing


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
    with showing("Reading the cluster"):
        pass
    assert ("Reading the cluster" in stream.getvalue()) is is_shown
