"""What the query of each sub-topology reads and runs (`QuerySpec`), from the current layout of the topics."""

from threading import Event

import attrs

from headwater_spark.driver.layout import Layout, Programs
from headwater_spark.driver.offsets import Offsets
from headwater_spark.driver.queries.progress import Progress
from headwater_spark.driver.queries.query_batches import QueryBatches
from headwater_spark.driver.queries.query_input import QueryInput, QueryServices
from headwater_spark.driver.topics.topic_check import TopicCheck
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.wiring import ignores_values


@attrs.frozen(kw_only=True, eq=False)
class QuerySpec:
    """One query. These values are fixed; `input` and `batches` use the current layout.

    - `name`: the name of the query in Spark.
    - `reads_single_topic`: Spark's partitions are the partitions of the tasks.
    - `row_topic`: the topic of all rows, if they need no column for it: they are of one topic, without ticks.
    - `reads_values`: the tasks read the values of records, not only whether there are any.
    - `ticks`: the input has ticks, because the sub-topology may schedule wall-clock punctuation.
    - `native_program`: the program, if Spark SQL evaluates it.
    """

    name: str
    reads_single_topic: bool
    row_topic: str | None
    reads_values: bool
    ticks: bool
    native_program: SubtopologyProgram | None
    input: QueryInput
    batches: QueryBatches


@attrs.define(kw_only=True, eq=False)
class QuerySpecs:
    """The layout and the progress of all queries. `update` changes the layout, from any thread.

    `check_requested` is set when a record waits for a partition: it may have been added.
    """

    _services: QueryServices
    _programs: Programs
    layout: Layout = attrs.field(factory=Layout, init=False)
    progress: Progress = attrs.field(factory=Progress, init=False)
    check_requested: Event = attrs.field(factory=Event, init=False)

    @property
    def has_threads(self) -> bool:
        """Whether a stream thread is alive."""
        return self._services.threads.alive > 0

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that the sub-topologies with a query read."""
        return frozenset().union(*map(self.layout.topics, self.layout.queries))

    def update(self, check: TopicCheck) -> None:
        """Use the topics of `check` from the next batch on."""
        programs = self._programs(check.compiled)
        self.layout = self.layout.updated(check.compiled, programs, check.partition_counts, check.topic_ids)
        self._services.rounds.update(check.compiled, check.partition_counts)

    def spec(self, subtopology: str) -> QuerySpec:
        """Return the query of a sub-topology, as the current layout describes it."""
        program, described = self.layout.programs[subtopology], self.layout.inputs[subtopology]
        reads_single_topic = len(described.topics) == 1 and not described.patterns
        row_topic = described.topics[0] if reads_single_topic and not described.ticks else None
        input_ = self._input(subtopology, reads_single_topic=reads_single_topic)
        return QuerySpec(
            name=f"{self._services.application} sub-topology {subtopology}",
            reads_single_topic=reads_single_topic,
            row_topic=row_topic,
            reads_values=not ignores_values(program),
            ticks=described.ticks,
            native_program=program if subtopology in self.layout.native else None,
            input=input_,
            batches=QueryBatches(input=input_, progress=self.progress, row_topic=row_topic),
        )

    def end_offsets(self, subtopology: str) -> Offsets:
        """Return the present end offsets of the input partitions; raises `KafkaException`."""
        return self._input(subtopology).end_offsets()

    def _input(self, subtopology: str, *, reads_single_topic: bool = False) -> QueryInput:
        return QueryInput(
            services=self._services,
            subtopology=subtopology,
            reads_single_topic=reads_single_topic,
            current_layout=lambda: self.layout,
            request_check=self.check_requested.set,
        )
