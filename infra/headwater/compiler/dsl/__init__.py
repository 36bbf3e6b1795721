"""Builds the node topology from the DSL and Processor API calls of a document, as Kafka Streams does.

Three layers: names and the index counter (`builder`); the graph of calls with its optimizations (`graph`,
`calls`, `optimize`); the written topology with its checks (`write`, `topology`, `lints`). The graph mirrors
the behavior of `InternalStreamsBuilder`, not its code. Names and sub-topologies depend on the order of
indices, priorities, parents and groups, so that order is the same as in Kafka Streams even where it looks
odd.

No function recurses over the topology and each pass takes linear time: 5,000 calls in a chain are supported.
"""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.document import Document, add_to_topology, divide_calls
from headwater.compiler.dsl.lints import LINTS, generated_names
from headwater.compiler.dsl.optimize import optimize_graph
from headwater.compiler.dsl.write import write_topology
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.version_differences import missing_options
from headwater.model.nodes import NodeTopology
from headwater.model.topology import TopologyDocument


def build_dsl(document: TopologyDocument, config: StreamsConfig) -> NodeTopology:
    """Return the node topology of `document.steps`; never raises, see `NodeTopology.problems`.

    Source: `StreamsBuilder`, `InternalStreamsBuilder#buildAndOptimizeTopology`, `InternalTopologyBuilder`.
    """
    builder = Builder(config)
    calls, on_topology = divide_calls(document.steps)
    Document(builder).run(calls)
    optimize_graph(builder)
    topology = write_topology(builder)
    for step in on_topology:
        add_to_topology(topology, step)
    lints = (problem for rule in LINTS for problem in rule(builder, topology))
    missing = missing_options(document.steps, config.version)
    problems = dict.fromkeys((*builder.problems, *topology.problems, *missing, *lints))
    return NodeTopology(
        nodes=topology.nodes(),
        stores=topology.stores(),
        global_nodes=topology.global_nodes,
        repartition_topics=topology.repartition_topics,
        copartition_groups=tuple(map(frozenset, builder.copartition_groups)),
        problems=tuple(
            problem.located(application=document.application.id, location=document.application.at)
            for problem in problems
        ),
        generated_names=generated_names(builder, topology),
    )
