"""An answer is found again for the same request and program only, and only if nothing else decided it."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.toolchain.cache import Cache
from tests.oracle.kafka_streams import may_differ
from tests.oracle.kept_answers import KeptAnswers, kept_answers

_DAY = 86_400
_PROGRAM = ("oracle-4.3.1-1f2e", "streams-library-0.1.0-3d4c")


@pytest.fixture(autouse=True)
def without_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_LIVE_ORACLE", raising=False)


def _java(folder: Path, release: str) -> Path:
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.touch()
    (folder / "jdk" / "release").write_text(release)
    return java


def _answers(folder: Path, *names: str, release: str = "17.0.1") -> KeptAnswers:
    found = kept_answers(_java(folder, release), *map(Path, names), cache=Cache(folder / "cache"))
    assert found is not None
    return found


def test_an_answer_is_found_for_its_request_and_program_only(tmp_path: Path) -> None:
    _answers(tmp_path, *_PROGRAM).keep("request", "answer ∞\n")

    assert _answers(tmp_path, *_PROGRAM).find("request") == "answer ∞\n"
    assert _answers(tmp_path, *_PROGRAM).find("another request") is None
    assert _answers(tmp_path, "oracle-4.3.1-aaaa", _PROGRAM[1]).find("request") is None
    assert _answers(tmp_path, _PROGRAM[0], "streams-library-0.1.0-aaaa").find("request") is None
    assert _answers(tmp_path, *_PROGRAM, release="17.0.2").find("request") is None


def test_a_damaged_answer_is_requested_again(tmp_path: Path) -> None:
    answers = KeptAnswers(tmp_path)
    answers.keep("request", "answer")
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    for content in (b"", file.read_bytes()[:-1], b"answer"):
        file.write_bytes(content)
        assert answers.find("request") is None
    answers.keep("request", "answer")
    assert answers.find("request") == "answer"


def test_answers_of_programs_that_were_not_used_for_long_are_deleted(tmp_path: Path) -> None:
    first, second = _answers(tmp_path, "first"), _answers(tmp_path, "second")
    for each, days in ((first, 15), (second, 13)):
        each.keep("request", "answer")
        os.utime(each.folder, (time.time() - days * _DAY,) * 2)

    _answers(tmp_path, "third")

    assert (first.folder.exists(), second.find("request")) == (False, "answer")


def test_a_variable_sends_each_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_LIVE_ORACLE", "1")

    assert kept_answers(_java(tmp_path, ""), Path("first"), cache=Cache(tmp_path / "cache")) is None


def _thrown(java_class: str, message: str | None = None) -> Mapping[str, Any]:
    return {"error": {"class": java_class, "message": message, "stage": "data"}}


@pytest.mark.parametrize(
    "thrown",
    [
        _thrown("java.lang.StackOverflowError"),
        _thrown("org.apache.kafka.common.errors.TimeoutException", "no answer"),
        _thrown("headwater.oracle.DataRun$Died", "task 0_0: java.lang.OutOfMemoryError: Java heap space"),
        _thrown("headwater.oracle.DataRun$Died", "store a: org.rocksdb.RocksDBException: No space left"),
        _thrown("java.io.UncheckedIOException", "java.io.IOException: No space left on device"),
        _thrown("java.nio.file.NoSuchFileException", "a store"),
    ],
)
def test_what_memory_time_or_a_disk_caused_is_not_kept(thrown: Mapping[str, Any]) -> None:
    assert may_differ(thrown)
    assert may_differ({"describe": "", "runs": [{"counts": {}}, thrown]})


@pytest.mark.parametrize(
    "response",
    [
        {"describe": "", "runs": [{"counts": {"app-a": 3}}]},
        {"records": []},
        _thrown("org.apache.kafka.streams.errors.TopologyException", "Invalid topology: request.timeout.ms"),
        _thrown("headwater.oracle.DataRun$Died", "Error: java.lang.ArithmeticException: / by zero"),
    ],
)
def test_what_the_request_decides_is_kept(response: Mapping[str, Any]) -> None:
    assert not may_differ(response)
