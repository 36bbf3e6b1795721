"""Decisions of the library about one topic and about failures."""

import subprocess
from pathlib import Path

import pytest

from headwater.model.acls import Operation, Permission, ResourceKind
from tests.quick_java import QUICK_PROGRAM
from tests.streams_library.applications import NEWEST, class_path

_STORE = "s-changelog", "2;cleanup.policy=compact"
_WINDOW = "w-changelog", "2;cleanup.policy=compact,delete;retention.ms=1000"
_VERSIONED = "v-changelog", "2;cleanup.policy=compact;min.compaction.lag.ms=500"
_REPARTITION = "r-repartition", "2;cleanup.policy=delete;retention.ms=-1;segment.bytes=52428800"
_OVERRIDDEN = "o-changelog", "2;cleanup.policy=compact;min.insync.replicas=2"
_CASES = (
    (_STORE, "2;cleanup.policy=compact;retention.ms=1", "equal"),
    (_STORE, "2", "equal"),  # its configs may not be read
    (_STORE, "1;cleanup.policy=compact", "too few"),
    (_STORE, "3;cleanup.policy=compact", "too many"),
    (_STORE, "2;cleanup.policy=delete", "cleanup.policy=compact"),
    (_STORE, "1;cleanup.policy=compact,delete", "too few; cleanup.policy=compact"),
    (_WINDOW, "2;cleanup.policy=compact,delete;retention.ms=1000;retention.bytes=-1", "equal"),
    (_WINDOW, "2;cleanup.policy=delete, compact;retention.ms=-1", "equal"),
    (_WINDOW, "2;cleanup.policy=compact;retention.ms=1", "equal"),  # nothing is deleted
    (_WINDOW, "2;cleanup.policy=compact,delete;retention.ms=999", "retention.ms=1000"),
    (_WINDOW, "2;cleanup.policy=delete;retention.ms=2000;retention.bytes=5", "retention.bytes=-1"),
    (_VERSIONED, "2;cleanup.policy=compact;min.compaction.lag.ms=500", "equal"),
    (_VERSIONED, "2;cleanup.policy=compact;min.compaction.lag.ms=499", "min.compaction.lag.ms=500"),
    (_REPARTITION, "2;cleanup.policy=delete;retention.ms=-1;segment.bytes=1048576", "equal"),
    (_REPARTITION, "2;cleanup.policy=delete;retention.ms=604800000", "retention.ms=-1"),
    (_REPARTITION, "2;cleanup.policy=compact;retention.ms=-1", "cleanup.policy=delete"),
    (_OVERRIDDEN, "2;cleanup.policy=compact;min.insync.replicas=1", "min.insync.replicas=2"),
)
_JOURNAL = (
    "false 1",
    "false 3",  # brokers that do not answer for a moment refuse no start
    "TimeoutException again",
    f"StreamsException 1 {Permission(ResourceKind.GROUP, 'shop', Operation.DESCRIBE).command}",
    "false 0",  # without state there is nothing to read
)
"""The answers about the journal of a reshard, the numbers of requests, and what to grant."""


@pytest.mark.oracle
def test_counts_configs_the_clock_of_failures_and_failed_reads_of_a_journal(tmp_path: Path) -> None:
    lines = [f"{name}\t{expected}\t{found}\n" for (name, expected), found, _ in _CASES]
    file = tmp_path / "topics.tsv"
    file.write_text("".join(lines), encoding="utf-8")
    done = subprocess.run(
        ["java", *QUICK_PROGRAM, "-cp", class_path(NEWEST), "io.headwater.streams.Decisions", file],
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout.splitlines()
    decisions, (clock, *journal) = printed[: len(_CASES)], printed[len(_CASES) :]
    assert decisions == [expected for _, _, expected in _CASES]
    assert clock == "falsetruetruefalsetruefalsefalsetrue"
    assert journal == list(_JOURNAL)
