"""When the offsets of idle partitions are committed again."""

from threading import Event

import attrs
import pytest
from structlog.testing import capture_logs

from headwater_spark.driver.queries.offset_renewal import FIRST_SECONDS, INTERVAL_SECONDS, OffsetRenewal


@attrs.define
class Query:
    """Notes when it was asked to renew its offsets."""

    answer: bool | Exception = True
    asked: int = 0

    def renew_offsets(self) -> bool:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@attrs.define
class Client:
    now: float = 1_000.0
    is_readable: bool = True
    queries: dict[str, Query] = attrs.field(factory=lambda: {"0": Query(), "1": Query()})
    stopping: Event = attrs.field(factory=Event)
    renewal: OffsetRenewal = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.renewal = OffsetRenewal(self.queries, lambda: self.is_readable, lambda: self.now)

    def after(self, seconds: float) -> list[int]:
        """Return how often each query was asked since the last call."""
        self.now += seconds
        self.renewal.renew_due(self.stopping)
        asked = [each.asked for each in self.queries.values()]
        for each in self.queries.values():
            each.asked = 0
        return asked


def test_offsets_are_renewed_soon_after_the_start_and_then_every_hour() -> None:
    client = Client()
    assert client.after(FIRST_SECONDS - 1) == [0, 0]
    assert client.after(1) == [1, 1]
    assert client.after(INTERVAL_SECONDS - 1) == [0, 0]
    assert client.after(1) == [1, 1]


@pytest.mark.parametrize("answer", [False, OSError("no broker answers")])
def test_a_query_that_was_busy_or_failed_is_asked_again_soon(answer: bool | Exception) -> None:  # noqa: FBT001
    client = Client()
    client.queries["1"].answer = answer
    with capture_logs() as log:
        assert client.after(FIRST_SECONDS) == [1, 1]
    warnings = [(line["event"], line["subtopology"], line["reason"]) for line in log]
    failed = isinstance(answer, Exception)
    assert warnings == ([("offsets not renewed, retrying", "1", "no broker answers")] if failed else [])
    client.queries["1"].answer = True
    assert client.after(59) == [0, 0]
    assert client.after(1) == [0, 1]
    assert client.after(INTERVAL_SECONDS - 60) == [1, 0]


def test_nothing_is_asked_while_no_broker_answers() -> None:
    client = Client(is_readable=False)
    assert client.after(FIRST_SECONDS) == [0, 0]
    client.is_readable = True
    assert client.after(60) == [1, 1]


def test_nothing_is_asked_when_the_client_stops() -> None:
    client = Client()
    client.stopping.set()
    assert client.after(FIRST_SECONDS) == [0, 0]
