"""The status table of a running application."""

import io
from typing import Any

import pytest
from rich.console import Console

from headwater.report.runtime_table import count_text, runtime_rich, size_text

_PART: dict[str, Any] = {
    "id": "0",
    "state": "RUNNING",
    "backend": "tasks",
    "sources": ["orders"],
    "parallelism": 4,
    "recordsPerSecond": 1234.5,
    "recordsRead": 98765,
    "recordsWritten": 5,
    "lag": 12,
    "stateBytes": 3 * 1024 * 1024,
    "failure": "",
}


def shown(width: int = 120, **status: Any) -> str:  # noqa: ANN401 - JSON
    whole = {
        "application": "orders-app",
        "state": "RUNNING",
        "problems": [],
        "subtopologies": [_PART],
    } | status
    output = io.StringIO()
    Console(file=output, width=width).print(runtime_rich(whole))
    return output.getvalue()


def test_each_sub_topology_has_a_line() -> None:
    first, heading, line = shown().splitlines()
    assert first.split() == ["orders-app", "RUNNING"]
    assert heading.split()[:4] == ["sub-topology", "state", "tasks", "records/s"]
    assert line.split() == ["0", "RUNNING", "4", "1,234", "98,765", "5", "12", "3", "MiB", "orders"]


def test_source_topics_are_below_the_table_on_a_narrow_terminal() -> None:
    long = _PART | {
        "state": "STARTING",
        "id": "10",
        "recordsRead": 1_234_567_890,
        "recordsWritten": 999_999,
        "lag": 123_456_789,
        "recordsPerSecond": 999_999.4,
        "stateBytes": 1023 * 1024,
        "sources": ["orders-app-by-customer-repartition", "customers"],
    }
    _, heading, line, reads = shown(80, subtopologies=[long]).splitlines()
    assert heading.split()[-1] == "state"
    assert line.split()[3:] == ["999,999", "1.235", "G", "999,999", "123.5", "M", "1,023", "KiB"]
    assert reads == "10 reads orders-app-by-customer-repartition, customers"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999_999, "999,999"),
        (1_000_000, "1.000 M"),
        (999_999_999, "1.000 G"),
        (1_234_567, "1.235 M"),
        (123_456_789, "123.5 M"),
        (10**18, "1.000 E"),
    ],
)
def test_counts(number: float, text: str) -> None:
    assert count_text(number) == text


def test_waiting_query_shows_the_reason_and_no_unknown_lag() -> None:
    text = shown(subtopologies=[_PART | {"state": "WAITING", "failure": "broker away\nmore", "lag": None}])
    assert "sub-topology 0: broker away" in text
    assert "more" not in text
    assert "None" not in text


def test_query_without_progress_says_what_it_waits_for() -> None:
    slow = {"secondsWithoutProgress": 12.3, "waitsFor": "batch 4, for 12 s", "stalled": False}
    text = shown(subtopologies=[_PART | slow])
    assert "sub-topology 0 made no progress for 12 seconds; it waits for batch 4, for 12 s\n" in text
    stalled = slow | {"secondsWithoutProgress": 301.0, "stalled": True}
    assert "for 5 minutes, so it is stalled; it waits for" in shown(subtopologies=[_PART | stalled])
    assert "waits for" not in shown(subtopologies=[_PART | slow | {"secondsWithoutProgress": 9.0}])


def test_starting_application_shows_its_step() -> None:
    text = shown(state="CREATED", starting="starting Spark, for 4 s", subtopologies=[])
    assert [line.rstrip() for line in text.splitlines()] == ["orders-app  CREATED", "starting Spark, for 4 s"]


def test_stopped_query_shows_no_failure() -> None:
    assert "Interrupted" not in shown(subtopologies=[_PART | {"state": "STOPPED", "failure": "Interrupted"}])


def test_problems_are_printed() -> None:
    assert "Internal topic x is gone." in shown(state="ERROR", problems=["Internal topic x is gone."])


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (1024, "1 KiB"), (5 * 2**40, "5 TiB"), (2**60, "1,048,576 TiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def _slow(**fields: object) -> str:
    task: dict[str, object] = {
        "task": "0_1",
        "seconds": 95.0,
        "record": "",
        "processor": "",
        "code": "",
        "restoring": "",
        "restored": 0,
        "toRestore": 0,
    }
    lines = shown(200, subtopologies=[_PART | {"slowTasks": [task | fields]}]).splitlines()
    return next((line for line in lines if line.startswith("task ")), "")


def test_a_task_whose_batch_takes_long_is_shown_with_what_it_does() -> None:
    line = _slow(record="orders, partition 1, offset 18", processor="enrich", code="shop, line 24")
    assert line == (
        "task 0_1 has processed one batch for 95 seconds: "
        "record of orders, partition 1, offset 18, processor enrich, shop, line 24"
    )
    assert _slow() == "task 0_1 has processed one batch for 95 seconds"
    assert not _slow(seconds=9.0)


def test_a_task_that_restores_its_state_shows_how_much() -> None:
    line = _slow(restoring="shop-counts-changelog", restored=4_200_000, toRestore=10_000_000)
    assert line.endswith(": restoring shop-counts-changelog, 42 % (4.200 M of 10.00 M offsets)")
