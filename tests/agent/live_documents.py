"""Documents with unique names for tests that share a broker, and partitioners that record their calls."""

import os
import re
from pathlib import Path
from threading import Lock

from headwater.model.topology import TopologyDocument
from tests.agent.simulation import ORDERS, RANKS, documents

_CALLS: list[tuple[int, int]] = []
_LOCK = Lock()


class RecordingPartitioner:
    """`tests.agent.live_documents:RecordingPartitioner`: records each call."""

    def on_partition_expansion(self, old: int, new: int) -> None:
        with _LOCK:
            _CALLS.append((old, new))


class FailingPartitioner:
    def on_partition_expansion(self, old: int, new: int) -> None:
        raise RuntimeError(f"cannot take {new} instead of {old}")


RECORDING_PARTITIONER = f"{__name__}:RecordingPartitioner"


def recorded_calls() -> list[tuple[int, int]]:
    """Return the recorded calls and clear the record."""
    with _LOCK:
        calls, _CALLS[:] = list(_CALLS), []
    return calls


def texts(suffix: str) -> tuple[str, str]:
    """Return the two documents with all names made unique by `suffix`."""
    names = ("totals-app", "ranks-app", "orders", "returns", "totals", "ranks")
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    first, second = (
        pattern.sub(rf"\1-{suffix}", text).replace("tenants:ByTenant", "range") for text in (ORDERS, RANKS)
    )
    return first, second


def unique_documents(suffix: str) -> tuple[TopologyDocument, ...]:
    return documents(*texts(suffix))


class WritingPartitioner:
    """Append each call to the file named by CALLS_FILE, for an agent in another process."""

    def on_partition_expansion(self, old: int, new: int) -> None:
        with Path(os.environ["CALLS_FILE"]).open("a") as file:
            file.write(f"{old} {new}\n")


WRITING_PARTITIONER = f"{__name__}:WritingPartitioner"
