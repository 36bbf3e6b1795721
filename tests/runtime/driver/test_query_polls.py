"""How often a client asks Spark whether its queries are active."""

from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from spark_jobs.runtime.driver.queries import query as module
from spark_jobs.runtime.driver.queries.query import SubtopologyQuery
from spark_jobs.runtime.driver.states import QueryState


@attrs.define
class _StreamingQuery:
    """The query of Spark, which counts the calls."""

    is_active: bool = True
    message: str = "Initializing sources"
    calls: int = 0

    @property
    def isActive(self) -> bool:  # noqa: N802 - PySpark's name
        self.calls += 1
        return self.is_active

    @property
    def status(self) -> dict[str, str]:
        return {"message": self.message}

    def exception(self) -> Exception:
        return RuntimeError("no leader")


@attrs.define
class _Spec:
    name: str = "query"

    def backoff_ms(self, *_: object) -> int:
        return 0


@attrs.define
class _Polled:
    query: SubtopologyQuery
    spark: _StreamingQuery
    now: float = 100.0

    def poll(self, seconds: float) -> QueryState:
        """Poll every tenth of a second for `seconds`."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.query.poll()
        return self.query.state


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch) -> _Polled:
    query = SubtopologyQuery(cast("Any", None), cast("Any", _Spec()))
    found = _Polled(query, _StreamingQuery())
    query._query = cast("Any", found.spark)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_start_of_a_query_is_noticed_at_the_next_poll(polled: _Polled) -> None:
    assert polled.poll(1.0) is QueryState.STARTING
    assert polled.spark.calls == 10
    polled.spark.message = "Waiting for data to arrive"
    assert polled.poll(0.1) is QueryState.RUNNING


def test_running_query_is_checked_twice_per_second(polled: _Polled) -> None:
    polled.spark.message = "Waiting for data to arrive"
    polled.poll(0.1)
    polled.spark.calls = 0
    assert polled.poll(10.0) is QueryState.RUNNING
    assert 15 <= polled.spark.calls <= 20
    polled.spark.is_active = False
    assert polled.poll(0.6) is not QueryState.RUNNING


def test_failed_batch_is_noticed_at_the_next_poll(polled: _Polled) -> None:
    polled.spark.message = "Waiting for data to arrive"
    polled.poll(1.0)
    polled.query.failure = RuntimeError("poison record")
    assert polled.poll(0.1) is QueryState.RUNNING, "Spark has not ended the query yet"
    polled.spark.is_active = False
    assert polled.poll(0.1) is not QueryState.RUNNING
