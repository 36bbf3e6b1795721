"""`print` and `peek` log with the function that the task is given."""

from collections.abc import Callable
from typing import Any

from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.topology_runner import NO_CACHE, programs

_STREAM = "- stream: {topic: in, serdes: {key: string, value: string}}\n"


def logged(operator: str) -> list[tuple[str, dict[str, Any]]]:
    lines: list[tuple[str, dict[str, Any]]] = []

    def logger(node: str) -> Callable[..., None]:
        assert node.startswith("KSTREAM-P")
        return lambda event, **fields: lines.append((event, fields))

    program = programs(f"{_STREAM}{operator}", NO_CACHE)[0]
    task = Task(program, 0, MemoryState(), logger=logger)
    task.process([("in", 0, 0, 1, b"k", b"v", ())], 0)
    return lines


def test_print_logs_key_and_value() -> None:
    assert logged("- print: null\n") == [("print", {"key": "k", "value": "v"})]


def test_peek_logs_nothing() -> None:
    assert logged("- peek: null\n") == []
