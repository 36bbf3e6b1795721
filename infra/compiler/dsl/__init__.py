"""From the DSL and Processor API calls of a document to the node topology that Kafka Streams builds.

Three layers, as in the facts: names and the index counter (`naming`), the graph of calls with its
optimizations (`graph`, `calls`, `optimize`), the written topology with its checks (`write`, `topology`,
`lints`). The graph mirrors what `InternalStreamsBuilder` does, observed and read, not how it is written: the
order of indices, priorities, parents and groups is behavior that names and sub-topologies depend on, and is
kept where it looks odd, too.

Nothing here recurses over the topology and each pass is linear: five thousand calls in a chain are ordinary.
"""

from infra.compiler.dsl import processor_api
from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.document import Document
from infra.compiler.dsl.lints import LINTS, generated_names
from infra.compiler.dsl.optimize import optimize
from infra.compiler.dsl.write import write
from infra.compiler.streams_config import StreamsConfig
from infra.model.nodes import NodeTopology
from infra.model.topology import TopologyDocument


def build_dsl(document: TopologyDocument, config: StreamsConfig) -> NodeTopology:
    """Build the topology of `document.steps`; never raises: what is wrong with them is in `problems`.

    Source: `StreamsBuilder`, `InternalStreamsBuilder#buildAndOptimizeTopology`, `InternalTopologyBuilder`.
    """
    builder = Builder(config)
    Document(builder).run(
        [step for step in document.steps if not processor_api.is_processor_api(step.operator)]
    )
    optimize(builder)
    topology = write(builder)
    for step in document.steps:
        if processor_api.is_processor_api(step.operator):
            processor_api.add(topology, step)
    told = (problem for rule in LINTS for problem in rule(builder, topology))
    problems = dict.fromkeys((*builder.problems, *topology.problems, *told))
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
