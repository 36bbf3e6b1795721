"""Long chains and wide fans are built without recursion and in linear time."""

import gc
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from headwater.compiler.dsl import build_dsl
from headwater.compiler.streams_config import StreamsConfig
from headwater.model import operators as op
from headwater.model.nodes import NodeTopology
from headwater.model.operators import JoinType, Step, TransformKind
from headwater.model.problems import Location, errors
from headwater.model.topology import Application, TopologyDocument
from headwater.model.windows import JoinWindow

AT = Location("case.yaml", 1, 1)
WINDOW = JoinWindow(5000, 5000)
SOURCE = op.ReadStream(op.Topics(("in",)))
REKEY = op.Transform(TransformKind.SELECT_KEY)
FILTER = op.Transform(TransformKind.FILTER)

Shape = Callable[[int], Iterator[Step]]


def chain(size: int) -> Iterator[Step]:
    yield Step(SOURCE, AT)
    for _ in range(size // 2):
        yield from (Step(op.GroupBy(), AT), Step(op.Count(), AT), Step(op.ToStream(), AT))


def fan(size: int) -> Iterator[Step]:
    yield Step(SOURCE, AT)
    yield Step(REKEY, AT, alias="k")
    for _ in range(size // 2):
        yield from (Step(op.GroupByKey(), AT, "k"), Step(op.Count(), AT))


def merges(size: int) -> Iterator[Step]:
    yield Step(SOURCE, AT, alias="s")
    for _ in range(size // 2):
        yield from (Step(REKEY, AT), Step(op.Merge("s"), AT), Step(op.GroupByKey(), AT), Step(op.Count(), AT))
        yield Step(op.ToStream(), AT)


def joins(size: int) -> Iterator[Step]:
    yield Step(SOURCE, AT, alias="s")
    for _ in range(size // 3):
        yield from (Step(REKEY, AT), Step(op.Join(JoinType.INNER, "s", window=WINDOW), AT))


def filters(size: int) -> Iterator[Step]:
    yield Step(op.ReadTable("t"), AT)
    for _ in range(size):
        yield Step(FILTER, AT)
    yield from (Step(op.GroupBy(), AT), Step(op.Count(), AT))


def build(shape: Shape, size: int, optimization: str) -> NodeTopology:
    application = Application("app", AT, config={"topology.optimization": optimization})
    return build_dsl(
        TopologyDocument(application, tuple(shape(size))), StreamsConfig.from_application(application)
    )


def seconds(shape: Shape, size: int, optimization: str) -> float:
    """Return the CPU time of a build."""
    gc.disable()
    try:
        start = time.process_time()
        build(shape, size, optimization)
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("optimization", [pytest.param("none", marks=pytest.mark.slow), "all"])
@pytest.mark.parametrize("shape", [chain, fan, merges, joins, filters])
def test_two_thousand(shape: Shape, optimization: str) -> None:
    """More than Python's recursion limit; `test_growth` builds five thousand."""
    assert sys.getrecursionlimit() < 2000
    nodes = build(shape, 2000, optimization)
    assert not errors(nodes.problems)
    assert len(nodes.nodes) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("optimization", [pytest.param("none", marks=pytest.mark.soak), "all"])
@pytest.mark.parametrize("shape", [chain, fan, merges, joins, filters])
def test_growth(shape: Shape, optimization: str) -> None:
    """Eight times as many nodes take about eight times as long; quadratic time would be 64 times as long.

    With all optimizations, the same is built first.
    """
    small = min(seconds(shape, 5000 // 8, optimization) for _ in range(3))
    # Other load only adds to the time, so one of three builds decides.
    taken = (seconds(shape, 5000, optimization) for _ in range(3))
    assert any(each < 24 * small for each in taken)
