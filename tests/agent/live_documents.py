"""Documents with unique names for tests that share a broker, and partitioners that record their calls."""

import os
import re
from pathlib import Path
from threading import Lock

from infra.model.topology import TopologyDocument
from tests.agent.simulation import ORDERS, RANKS, documents

_CALLS: list[tuple[int, int]] = []
_LOCK = Lock()


class Heard:
    """`tests.agent.live_documents:Heard`: records each call."""

    def on_partition_expansion(self, old: int, new: int) -> None:
        with _LOCK:
            _CALLS.append((old, new))


class Failing:
    def on_partition_expansion(self, old: int, new: int) -> None:
        raise RuntimeError(f"cannot take {new} instead of {old}")


HEARD = f"{__name__}:Heard"


def heard() -> list[tuple[int, int]]:
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


class Written:
    """Append each call to the file named by HEARD_FILE, for an agent in another process."""

    def on_partition_expansion(self, old: int, new: int) -> None:
        with Path(os.environ["HEARD_FILE"]).open("a") as file:
            file.write(f"{old} {new}\n")


WRITTEN = f"{__name__}:Written"
