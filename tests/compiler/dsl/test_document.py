"""Calls on handles, also for documents that are not valid for the schema."""

import pytest

from headwater.compiler.dsl import build_dsl
from headwater.compiler.dsl.document import divide_calls
from headwater.compiler.streams_config import StreamsConfig
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.nodes import NodeTopology
from headwater.model.operators import JoinType, Operator, Step, SuppressUntil, TransformKind
from headwater.model.problems import Location
from headwater.model.stores import StoreBuilder, StoreKind, StoreSupplier
from headwater.model.topology import Application, TopologyDocument
from headwater.model.windows import TumblingWindow

AT = Location("case.yaml", 1, 1)
STREAM = op.ReadStream(op.Topics(("a",)))
FILTER = op.Transform(TransformKind.FILTER)


def step(operator: Operator, on: str | None = None, alias: str | None = None) -> Step:
    return Step(operator, AT, on, alias)


def built(*steps: Step) -> NodeTopology:
    application = Application("app", AT)
    return build_dsl(TopologyDocument(application, steps), StreamsConfig.from_application(application))


def only_problem(*steps: Step) -> tuple[str, str | None, str]:
    (problem,) = built(*steps).problems
    return problem.summary, problem.expected, problem.fix


def test_a_first_step_has_no_input() -> None:
    summary, expected, fix = only_problem(step(FILTER))
    assert summary == "`filter` has no input: no call precedes it."
    assert expected == "`from: <alias>`, or a preceding call"
    assert fix == "Start with `stream` or `table`."


def test_a_call_without_result_has_no_further_call() -> None:
    summary, _, fix = only_problem(step(STREAM), step(op.To("out")), step(FILTER))
    assert summary == "`filter` follows `to`, which returns nothing."
    assert fix == "Set its input: `from: <alias>`."


def test_only_branches_of_a_split_have_further_calls() -> None:
    split = op.Split(branches=(op.Branch(alias="one"),))
    summary, _, fix = only_problem(step(STREAM), step(split), step(FILTER))
    assert summary == "`filter` needs a stream or a table; the result before it is a split."
    assert fix == "Give the branches `as`, and name one in `from`."
    assert not built(step(STREAM), step(split), step(FILTER, "one")).problems


def test_an_unknown_alias_suggests_the_most_similar_one() -> None:
    summary, expected, fix = only_problem(step(STREAM, alias="orders"), step(FILTER, "order"))
    assert summary == "No result is named order."
    assert expected == "one of: orders"
    assert fix == "Did you mean orders?"


def test_an_alias_is_used_once() -> None:
    again = op.ReadStream(op.Topics(("b",)))
    summary, _, _ = only_problem(step(STREAM, alias="s"), step(again, alias="s"), step(FILTER, "s"))
    assert summary == "Two results are named s."


def test_calls_on_an_invalid_result_report_no_further_problem() -> None:
    summary, _, _ = only_problem(
        step(STREAM),
        step(op.Count(), alias="counts"),
        step(op.ToStream()),
        step(op.To("out")),
        step(op.Join(JoinType.INNER, "counts"), "counts"),
    )
    takers = "a grouped stream, a windowed stream or a grouped table"
    assert summary == f"`count` needs {takers}; the result before it is a stream."


def test_the_alias_of_a_branch_with_calls_names_the_last_result() -> None:
    ends = op.Branch(alias="ends", then=(step(op.To("out")),))
    continues = op.Branch(alias="continues", then=(step(FILTER),))
    split = step(op.Split(branches=(ends, continues)))
    assert built(step(STREAM), split, step(FILTER, "continues")).nodes[-1].name == "KSTREAM-FILTER-0000000006"
    summary, _, _ = only_problem(step(STREAM), split, step(FILTER, "ends"))
    assert summary == "`filter` follows `to`, which returns nothing."


def test_calls_on_the_topology_are_not_valid_in_branches() -> None:
    source = step(processor_api.AddSource("s", op.Topics(("b",))))
    split = step(op.Split(branches=(op.Branch(then=(source,)),)))
    summary, _, fix = only_problem(step(STREAM), split)
    assert summary == "`addSource` is a call on the whole topology, not on a branch."
    assert fix == "Make the call `addSource` outside of `then`."


def test_branches_of_an_invalid_split_are_known() -> None:
    branch = op.Branch(alias="one", then=(step(FILTER, alias="inner"),))
    steps = (step(STREAM), step(op.GroupByKey()), step(op.Split(branches=(branch,))))
    summary, _, _ = only_problem(*steps, step(FILTER, "one"), step(FILTER, "inner"))
    assert summary == "`split` needs a stream; the result before it is a grouped stream."


def test_a_join_of_streams_needs_a_window() -> None:
    summary, _, _ = only_problem(step(STREAM, alias="a"), step(op.Join(JoinType.INNER, "a"), "a"))
    assert summary == "A stream-stream join needs a window."


def test_final_results_are_not_emitted_early() -> None:
    early = op.Suppress(SuppressUntil.WINDOW_CLOSES, name="final", max_records=10)
    windowed = op.WindowedBy(TumblingWindow(5000))
    steps = (step(STREAM), step(op.GroupByKey()), step(windowed), step(op.Count(name="counts")), step(early))
    assert (
        built(*steps).problems[0].summary
        == "final waits for a window to close, but its buffer emits early when it is full."
    )


@pytest.mark.parametrize("other", ["stream", "grouped"])
def test_merge_takes_streams(other: str) -> None:
    steps = (
        step(STREAM, alias="stream"),
        step(op.GroupByKey(), alias="grouped"),
        step(op.Merge(other), "stream"),
    )
    assert [problem.summary for problem in built(*steps).problems] == (
        [] if other == "stream" else ["`merge` needs another stream, and `grouped` is not a stream."]
    )


SOURCE = processor_api.AddSource("source", op.Topics(("a",)))
STORE = processor_api.AddStateStore(StoreBuilder(StoreSupplier("seen", StoreKind.KEY_VALUE)))


@pytest.mark.parametrize(
    ("calls", "on_topology"),
    [
        ((STORE, SOURCE), (SOURCE,)),
        ((SOURCE, STORE), (SOURCE, STORE)),
        ((STORE, SOURCE, STORE, STORE), (SOURCE, STORE, STORE)),
        ((SOURCE, STORE, STREAM), (SOURCE,)),
        ((SOURCE, STREAM, STORE), (SOURCE, STORE)),
        ((STREAM, STORE, FILTER), ()),
    ],
)
def test_a_store_is_added_to_the_topology_after_all_calls_of_the_dsl(
    calls: tuple[Operator, ...], on_topology: tuple[Operator, ...]
) -> None:
    of_dsl, found = divide_calls([step(call) for call in calls])
    assert tuple(each.operator for each in found) == on_topology
    assert len(of_dsl) + len(found) == len(calls)


def test_a_store_cannot_be_connected_before_it_is_added() -> None:
    processor = processor_api.AddProcessor("score", ("source",))
    connect = processor_api.ConnectStores("score", ("seen",))
    assert not built(step(SOURCE), step(processor), step(STORE), step(connect)).problems
    (problem,) = built(step(SOURCE), step(processor), step(connect), step(STORE)).problems
    assert problem.node == "score"
    assert "seen" in problem.summary
