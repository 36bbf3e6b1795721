"""How long a query may wait for a signal."""

from typing import Any, cast

import attrs
import pytest

from headwater_spark.driver.layout import Layout, QueryInput
from headwater_spark.driver.queries.watched_inputs import WatchedInput


@attrs.frozen
class _Specs:
    layout: Layout


@pytest.mark.parametrize(
    ("patterns", "ticks", "expected"),
    [
        pytest.param((), False, 10.0, id="named topics"),
        pytest.param(("in-.*",), False, 1.0, id="a topic that matches may be new"),
        pytest.param(("in-.*",), True, 0.1, id="ticks of the wall clock"),
    ],
)
def test_longest_wait_depends_on_the_input(
    patterns: tuple[str, ...], expected: float, *, ticks: bool
) -> None:
    input_ = QueryInput(topics=("in",), patterns=patterns, resets={}, ticks=ticks)
    specs = cast("Any", _Specs(Layout(inputs={"0": input_})))
    assert WatchedInput(specs, "0").max_wait_seconds == expected
