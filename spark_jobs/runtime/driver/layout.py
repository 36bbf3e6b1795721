"""PURE. An application on the topics that there are at present."""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

import attrs

from infra.compiler.java.patterns import JavaPattern
from infra.model.compiled import Backend, CompiledApplication
from spark_jobs.runtime.driver.inputs import QueryInput, query_input
from spark_jobs.runtime.driver.reset import Reset
from spark_jobs.runtime.engine.program import SubtopologyProgram

Place = tuple[str, int]


@attrs.frozen(kw_only=True)
class Layout:
    """Replaced as a whole when topics come, go or grow.

    `edition` counts the replacements. `counts` is topic → partitions, `ids` topic → id; `programs` and
    `inputs` go by the sub-topologies' names, `native` are those that Spark SQL evaluates.
    """

    edition: int = 0
    counts: Mapping[str, int] = attrs.field(factory=dict)
    ids: Mapping[str, str] = attrs.field(factory=dict)
    programs: Mapping[str, SubtopologyProgram] = attrs.field(factory=dict)
    inputs: Mapping[str, QueryInput] = attrs.field(factory=dict)
    repartitions: frozenset[str] = frozenset()
    native: frozenset[str] = frozenset()

    def next(
        self,
        compiled: CompiledApplication,
        programs: Iterable[SubtopologyProgram],
        counts: Mapping[str, int],
        ids: Mapping[str, str],
    ) -> "Layout":
        """Return the layout that takes this one's place."""
        counted = [program.with_counts(counts) for program in programs]
        parts = compiled.subtopologies
        return Layout(
            edition=self.edition + 1,
            counts=counts,
            ids=ids,
            programs={program.name: program for program in counted},
            inputs={program.name: query_input(program) for program in counted},
            repartitions=frozenset(topic for part in parts for topic in part.repartition_topics),
            native=frozenset(str(part.id) for part in parts if part.backend is Backend.NATIVE),
        )

    @property
    def global_programs(self) -> tuple[SubtopologyProgram, ...]:
        return tuple(program for program in self.programs.values() if program.is_global)

    @property
    def queries(self) -> tuple[str, ...]:
        """The sub-topologies that have a query; a global one is read along by all of them."""
        return tuple(name for name, program in self.programs.items() if not program.is_global)

    def topics(self, name: str) -> tuple[str, ...]:
        """Return the topics that a query reads."""
        input_ = self.inputs[name]
        patterns = [JavaPattern(pattern) for pattern in input_.patterns]
        matching = {topic for topic in self.counts if any(each.matches(topic) for each in patterns)}
        return tuple(sorted({topic for topic in input_.topics if topic in self.counts} | matching))

    def places(self, topics: Collection[str]) -> list[Place]:
        """Return the partitions of `topics`."""
        return [(topic, each) for topic in sorted(topics) for each in range(self.counts.get(topic, 0))]

    def resets(self, name: str) -> Mapping[Place, Reset]:
        """Return where a query begins in partitions of which nothing is committed."""
        program, input_ = self.programs[name], self.inputs[name]
        return {
            (topic, partition): input_.resets[program.source(topic)]
            for topic, partition in self.places(self.topics(name))
        }

    def task_counts(self, name: str) -> Mapping[str, int]:
        """Return the partitions of all topics that a query's tasks read, those of global tables included."""
        globals_ = {topic for program in self.global_programs for topic in program.sources}
        read = sorted({*self.topics(name), *globals_})
        return {topic: self.counts[topic] for topic in read if topic in self.counts}

    def digest(self, name: str) -> str:
        """Return what tells a query's source topics from others that had their names."""
        ids = " ".join(self.ids.get(topic, "") for topic in self.inputs[name].topics)
        return blake2b(ids.encode(), digest_size=4).hexdigest()
