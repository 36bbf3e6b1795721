"""Histories of stream threads, recorded from the real `KafkaStreams` (KIP-663).

`threads/histories.json` contains them: the client's configuration, and for each operation what it returned
and the client afterwards. `test_thread_histories.py` compares them with the real class; with
`UPDATE_GOLDEN=1`, it rewrites the file.

| operation | what it does |
|---|---|
| `start`, `close` | starts or closes all clients |
| `add`, `add-two` | `addStreamThread()`, once or twice without a pause |
| `remove`, timeout | `removeStreamThread()`, with a timeout (milliseconds) or without |
| `fail`, index | the thread throws an exception in its task; returns what the handler `add-thread` got |
| `fail-together`, indices | several threads do |
| `block`, index; `unblock` | the thread does not return from its task, until it is unblocked |
| `fail-while-removed`, index, timeout | removes a thread that is in its task, and throws there |

The handlers `shutdown-thread` and `add-thread` throw the exception again, the second one after it has called
`addStreamThread()`: so the thread ends, and nothing else happens.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

FILE = Path(__file__).parent / "threads" / "histories.json"
PARTITIONS = 8

Operation = tuple[str | int, ...]


@attrs.frozen
class Outcome:
    """What an operation returned, and the client afterwards.

    Args:
        returned: The index of a thread, `none` for an empty result, or `TimeoutException`; None = no result.
        state: The state of the client (`KafkaStreams.State`).
        threads: Index → state of each thread in the metadata; in brackets, a newer state than the metadata's.
        cache_bytes: Index → bound of the thread's record cache.
        alive: Metric `alive-stream-threads`; None = the client is closed.
        failed: Metric `failed-stream-threads`.
        other: The state of the second client.
    """

    returned: int | str | tuple[int, ...] | None
    state: str
    threads: Mapping[int, str]
    cache_bytes: Mapping[int, int]
    alive: int | None
    failed: int | None
    other: str | None = None


@attrs.frozen
class Step:
    operation: Operation
    outcome: Outcome


@attrs.frozen
class History:
    """One run of one client, or of two clients of one application.

    Args:
        threads: `num.stream.threads`.
        handler: The answer of the uncaught exception handler; None = no handler.
        global_table: The topology has a global table.
        cache_bytes: `statestore.cache.max.bytes`.
    """

    name: str
    threads: int
    handler: str | None
    clients: int
    global_table: bool
    cache_bytes: int
    steps: tuple[Step, ...]


def histories() -> tuple[History, ...]:
    """Return the recorded histories."""
    return tuple(_history(content) for content in contents())


def contents() -> list[dict[str, Any]]:
    """Return the histories as they are stored."""
    content: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def text(content: Sequence[Mapping[str, Any]]) -> str:
    """Return histories in the format of the file: one line for each step."""
    return "[\n" + ",\n".join(map(_text, content)) + "\n]\n"


def _text(history: Mapping[str, Any]) -> str:
    head = {key: value for key, value in history.items() if key != "steps"}
    steps = ",\n".join(f"    {json.dumps(step)}" for step in history["steps"])
    return f' {json.dumps(head)[:-1]}, "steps": [\n{steps}\n ]}}'


def _history(content: Mapping[str, Any]) -> History:
    return History(
        content["name"],
        content["threads"],
        content.get("handler"),
        content.get("clients", 1),
        content.get("globalTable", False),
        content.get("cacheBytes", 0),
        tuple(Step(tuple(step["do"]), _outcome(step)) for step in content["steps"]),
    )


def _outcome(step: Mapping[str, Any]) -> Outcome:
    returned = step["returned"]
    return Outcome(
        tuple(returned) if isinstance(returned, list) else returned,
        step["state"],
        {int(index): state for index, state in step["threads"].items()},
        {int(index): size for index, size in step["cacheBytes"].items()},
        step["alive"],
        step["failed"],
        step.get("other"),
    )
