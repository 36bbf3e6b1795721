"""The signal of a query, with a Spark that has other plans than the pinned one."""

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from structlog.testing import capture_logs

from headwater_spark.spark_internals.input_signals import InputSignal


class _Stream:
    """A stream whose plan cannot be read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def _jdf(self) -> Any:  # noqa: ANN401 - py4j has no types
        raise self._error


@pytest.mark.parametrize("error", [Py4JError("no method table([])"), TypeError("not callable")])
def test_a_query_of_another_spark_polls(error: Exception) -> None:
    stream: Any = _Stream(error)
    source: Any = None
    with capture_logs() as logs:
        assert InputSignal(source).applied(stream) is stream
    assert [(log["event"], log["reason"]) for log in logs] == [("idle queries keep polling", str(error))]


def test_the_end_of_the_jvm_is_raised() -> None:
    stream: Any = _Stream(Py4JNetworkError("closed"))
    source: Any = None
    with pytest.raises(Py4JNetworkError):
        InputSignal(source).applied(stream)
