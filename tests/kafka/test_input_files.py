"""Files, pipes and standard input that are larger than anything that options name."""

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from headwater.kafka.input_files import read_file, read_input, read_stream, read_text

MIB = 1 << 20


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(b"x" * MIB)
    assert read_file(file, MIB) == b"x" * MIB
    with file.open("ab") as opened:
        opened.write(b"x")
    with pytest.raises(OSError, match="larger than 1 MiB") as raised:
        read_file(file, MIB)
    assert raised.value.strerror == "it is larger than 1 MiB"


def test_a_stream_without_an_end_is_not_read_to_its_end() -> None:
    with pytest.raises(OSError, match="larger than 2 MiB"):
        read_file(Path("/dev/zero"), 2 * MIB)


def test_a_pipe_is_read(tmp_path: Path) -> None:
    """A shell passes one for `<(command)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("Topologies:",))
    writer.start()
    assert read_text(pipe, MIB) == "Topologies:"
    writer.join()


def test_standard_input_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"12345")))
    assert read_input(Path("-"), MIB) == b"12345"
    with pytest.raises(OSError, match="larger"):
        read_stream(io.BytesIO(b"x" * (MIB + 1)), MIB)


def test_text_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(tmp_path / "text", MIB)
