"""Any calls give a topology or complete problems."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler.dsl import build_dsl
from headwater.compiler.streams_config import OPTIMIZATIONS, StreamsConfig
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.operators import JoinType, Operator, Step, SuppressUntil, TransformKind
from headwater.model.problems import Location
from headwater.model.stores import Logging, Materialized, StoreBuilder, StoreKind, StoreSupplier, StoreType
from headwater.model.topology import Application, TopologyDocument
from headwater.model.windows import (
    HoppingWindow,
    JoinWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
)

AT = Location("case.yaml", 1, 1)
ALIASES = ["h0", "h1", "h2", "h3"]

names = st.none() | st.sampled_from(
    ["n", "m", "two words", "", "..", "KSTREAM-FOO-0000000099", "x-repartition"]
)
topics = st.sampled_from(["a", "b", "n-repartition"])
aliases = st.sampled_from(ALIASES)
milliseconds = st.integers(-1, 9)
loggings = st.builds(Logging, enabled=st.booleans())
suppliers = st.builds(
    StoreSupplier,
    name=st.sampled_from(["s", "t", "two words"]),
    kind=st.sampled_from(StoreKind),
    retention_ms=st.none() | milliseconds,
    window_size_ms=st.none() | milliseconds,
    retain_duplicates=st.booleans(),
)
builders = st.builds(StoreBuilder, supplier=suppliers, logging=loggings)
materializations = st.none() | st.builds(
    Materialized,
    store=st.none() | st.sampled_from(["s", "t"]),
    supplier=st.none() | suppliers,
    type=st.none() | st.sampled_from(StoreType),
    retention_ms=st.none() | milliseconds,
    logging=st.none() | loggings,
)
windows = st.one_of(
    st.builds(TumblingWindow, milliseconds, milliseconds),
    st.builds(HoppingWindow, milliseconds, milliseconds, milliseconds),
    st.builds(SlidingWindow, milliseconds, milliseconds),
    st.builds(SessionWindow, milliseconds, milliseconds),
    st.builds(UnlimitedWindow),
)
sets = st.builds(op.Topics, st.lists(topics, max_size=2).map(tuple)) | st.builds(
    op.Topics, pattern=st.sampled_from(["a.*", "b|c", "("])
)
stores = st.lists(st.sampled_from(["s", "t"]), max_size=2).map(tuple)
inline = st.lists(builders, max_size=1).map(tuple)
parents = st.lists(st.sampled_from(["n", "m", "missing"]), max_size=2).map(tuple)


def named(operator: type[Operator], /, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[Operator]:
    return st.builds(operator, name=names, **fields)


aggregations: list[st.SearchStrategy[Operator]] = [
    named(kind, materialized=materializations) for kind in (op.Count, op.Reduce, op.Aggregate)
]
simple = st.one_of(
    named(op.ReadStream, topics=sets, offset_reset=st.none() | st.just("earliest")),
    named(op.ReadTable, topic=topics, materialized=materializations),
    named(op.GlobalTable, topic=topics, materialized=materializations),
    named(
        processor_api.AddGlobalStore,
        store=builders,
        topic=topics,
        source_name=st.none() | st.sampled_from(["n", "m"]),
    ),
    st.builds(processor_api.AddStateStore, store=builders, processors=parents),
    st.builds(
        processor_api.AddReadOnlyStateStore,
        builders,
        topics,
        st.sampled_from(["n", "m"]),
        st.sampled_from(["n", "o"]),
    ),
    named(op.Transform, kind=st.sampled_from(TransformKind), materialized=materializations),
    named(op.Process, stores=stores, connected=inline),
    named(op.ProcessValues, stores=stores, connected=inline),
    named(op.TransformValues, stores=stores, connected=inline, materialized=materializations),
    named(op.Merge, other=aliases),
    named(op.To, topic=topics),
    named(op.Repartition, partitions=st.none() | st.integers(0, 3)),
    named(op.GroupByKey),
    named(op.GroupBy),
    named(op.ToTable, materialized=materializations),
    named(op.ToStream, selects_key=st.booleans()),
    st.builds(op.WindowedBy, windows, st.booleans()),
    st.builds(op.Cogroup, st.none() | aliases),
    *aggregations,
    named(op.Suppress, until=st.sampled_from(SuppressUntil), max_records=st.none() | st.just(1)),
    named(
        op.Join,
        type=st.sampled_from(JoinType),
        other=aliases,
        window=st.none() | st.builds(JoinWindow, milliseconds, milliseconds, milliseconds),
        store_name=names,
        this_supplier=st.none() | suppliers,
        other_supplier=st.none() | suppliers,
        logging=st.none() | loggings,
        grace_ms=st.none() | milliseconds,
        is_foreign_key=st.booleans(),
        materialized=materializations,
    ),
    st.builds(processor_api.AddSource, name=st.sampled_from(["n", "m"]), topics=sets),
    st.builds(
        processor_api.AddProcessor, name=st.sampled_from(["n", "m"]), parents=parents, connected=inline
    ),
    st.builds(processor_api.AddSink, name=st.sampled_from(["n", "m"]), parents=parents, topic=topics),
    st.builds(processor_api.ConnectStores, processor=st.sampled_from(["n", "m"]), stores=stores),
)


def steps(operators: st.SearchStrategy[Operator], most: int) -> st.SearchStrategy[tuple[Step, ...]]:
    one = st.builds(Step, operators, st.just(AT), st.none() | aliases, st.none() | aliases)
    return st.lists(one, max_size=most).map(tuple)


branches = st.builds(op.Branch, name=names, alias=st.none() | aliases, then=steps(simple, 2))
splits = named(op.Split, branches=st.lists(branches, max_size=2).map(tuple), default=st.none() | branches)
configs = st.fixed_dictionaries(
    {},
    optional={
        "topology.optimization": st.sampled_from(["all", *sorted(OPTIMIZATIONS)]),
        "ensure.explicit.internal.resource.naming": st.just("true"),
    },
)
documents = st.builds(
    TopologyDocument,
    application=st.builds(Application, id=st.just("app"), at=st.just(AT), config=configs),
    steps=steps(simple | splits, 12),
)


@given(documents)
def test_no_document_raises_and_every_problem_is_complete(document: TopologyDocument) -> None:
    nodes = build_dsl(document, StreamsConfig.from_application(document.application))
    assert len({node.name for node in nodes.nodes}) == len(nodes.nodes)
    for problem in nodes.problems:
        assert problem.application == "app"
        assert problem.summary.endswith(".")
        assert problem.why.endswith(".")
        assert problem.fix.endswith((".", "?"))


@given(documents)
def test_a_document_always_gives_the_same_topology(document: TopologyDocument) -> None:
    config = StreamsConfig.from_application(document.application)
    assert build_dsl(document, config) == build_dsl(attrs.evolve(document), config)
