"""The steps of the demo: what happens to the topologies of a shop over time, and what has to be observed.

An observation is what a step did: errors and changed topics.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

import attrs

from headwater.cli.demo.actions import (
    PREVIEW,
    UP,
    Action,
    Command,
    CopyFile,
    Create,
    Delete,
    Edit,
    Expand,
    Headwater,
    Java,
    ProducePayments,
    Run,
)
from headwater.model.cluster import LiveTopic
from headwater.planner import ActionKind
from headwater.planner.phrases import counted
from headwater.toolchain.pulumi_cli import Finished

_ERROR = re.compile(r"error\[(\w+)\]")
ACTIONS = "|".join(
    kind.value
    for kind in (
        ActionKind.CREATE,
        ActionKind.RECREATE,
        ActionKind.ADOPT,
        ActionKind.EXPAND,
        ActionKind.RECONFIGURE,
    )
)
_PLANNED = re.compile(rf"^ +({ACTIONS}) +\S+ +\d.*?(?:wave (\d+))?$", re.MULTILINE)
_LOST = re.compile(r"^Change of the topology: (\d+) stores? loses? ", re.MULTILINE)
_LOCATION = re.compile(r"^ +at +(\S+):(\d+):\d+", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Observation:
    """What a step of the demo has shown; each step has an expected observation.

    `errors` are the codes of problems; `location` is file and line of the first. `planned` is kind of action
    → number of topics in the plan. `waves` is the number of topics in each wave of an expansion. `expanded`
    is topic → new partition count; `replaced` are topics with a new topic id. `results` are output records of
    the application. `lost_stores` is how many stores would lose their state by an edit.
    """

    succeeded: bool = True
    errors: frozenset[str] = frozenset()
    location: str | None = None
    planned: Mapping[str, int] = attrs.field(factory=dict)
    waves: tuple[int, ...] = ()
    created: int = 0
    expanded: Mapping[str, int] = attrs.field(factory=dict)
    replaced: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    results: Mapping[str, float] = attrs.field(factory=dict)
    lost_stores: int = 0

    @classmethod
    def from_command(
        cls, finished: Finished, before: Mapping[str, LiveTopic], after: Mapping[str, LiveTopic]
    ) -> Self:
        """Compare the topics before and after a command, and parse its output."""
        both = before.keys() & after.keys()
        location = _LOCATION.search(finished.text)
        planned = _PLANNED.findall(finished.text)
        lost = _LOST.search(finished.text)
        waves = Counter(wave for _, wave in planned if wave)
        return cls(
            succeeded=finished.code == 0,
            errors=frozenset(_ERROR.findall(finished.text)),
            location=f"{location[1]}:{location[2]}" if location and finished.code else None,
            planned=dict(Counter(kind for kind, _ in planned)),
            waves=tuple(waves[wave] for wave in sorted(waves)),
            created=len(after.keys() - before.keys()),
            expanded={n: after[n].partitions for n in both if after[n].partitions != before[n].partitions},
            replaced=frozenset(name for name in both if after[name].topic_id != before[name].topic_id),
            deleted=frozenset(before.keys() - after.keys()),
            lost_stores=int(lost[1]) if lost else 0,
        )

    def matches(self, expected: "Observation") -> bool:
        """Whether this is as expected; the location is compared only if one is expected."""
        return attrs.evolve(self, location=self.location if expected.location else None) == expected

    def __str__(self) -> str:
        codes = ", ".join(sorted(self.errors))
        outcome = "succeeds" if self.succeeded else f"refused: {codes or 'no code'}"
        if self.lost_stores:
            outcome = f"{counted(self.lost_stores, 'store')} would lose state"
        location = f" at {self.location}" if self.location else ""
        planned = "".join(f", {number} to {kind}" for kind, number in sorted(self.planned.items()))
        results = "".join(f"; {name}: {number:.2f}" for name, number in sorted(self.results.items()))
        return f"{outcome}{location}{planned}; {self._changes()}{results}"

    def _changes(self) -> str:
        changes = []
        if self.created:
            changes.append(f"{counted(self.created, 'topic')} created")
        if self.expanded:
            sizes = "/".join(str(count) for count in sorted(set(self.expanded.values())))
            order = f" (order: {', then '.join(map(str, self.waves))})" if len(self.waves) > 1 else ""
            changes.append(f"{counted(len(self.expanded), 'topic')} expanded to {sizes}{order}")
        changes += [f"{name} REPLACED" for name in sorted(self.replaced)]
        changes += [f"{name} DELETED" for name in sorted(self.deleted)]
        # An adoption may change settings, which are not compared here.
        unchanged = "no topic created, replaced or expanded" if "adopt" in self.planned else "nothing changed"
        return ", ".join(changes) or unchanged


_REVENUE = "revenue-by-category"
_REPARTITION = "revenue-by-category-by-category-repartition"
_STATE = "revenue-by-category-hourly-revenue-changelog"
_BUFFER = "revenue-by-category-closed-hours-store-changelog"
_SETUP = "  id: revenue-by-category\n"
_REINITIALIZE = "  id: revenue-by-category\n  setup: {reinitialize: true}\n"

SOURCE_TOPICS: Mapping[str, int] = {
    "customers": 4,
    "open-orders": 4,
    "orders": 4,
    "payments": 4,
    "purchases": 4,
    "stock": 3,
}


@attrs.frozen(kw_only=True)
class Step:
    """The `actions` run first, then the `command`, whose result must be as `expected`.

    `reads` is an output topic whose records are part of the result.
    """

    title: str
    description: str
    actions: Sequence[Action] = ()
    command: Command
    expected: Observation
    reads: str | None = None
    outcome: str


STEPS: Sequence[Step] = (
    Step(
        title="Preview",
        description="Three applications of a shop, each with a document. Which internal topics do they need? "
        "The partition counts follow the source topics, which exist already.",
        command=PREVIEW,
        expected=Observation(planned={"create": 12}),
        outcome="Twelve topics would be created. Nothing is created yet.",
    ),
    Step(
        title="Set up",
        description="Explicit initialization: internal topics are created only here, and the stack records "
        "their ids.",
        command=UP,
        expected=Observation(planned={"create": 12}, created=12),
        outcome="The topics exist, named, sized and configured as Kafka Streams would have created them.",
    ),
    Step(
        title="Run it again",
        description="The second run has nothing to do.",
        command=UP,
        expected=Observation(),
        outcome="No changes.",
    ),
    Step(
        title="A source topic is expanded, autoscaling is off",
        description="A user expands `payments` from 4 to 6 partitions. With the feature off, a Kafka Streams "
        "application would stop at its next rebalance.",
        actions=(
            Edit(_REVENUE, "partition.autoscaling.enabled: true", "partition.autoscaling.enabled: false"),
            Expand("payments", 6),
        ),
        command=PREVIEW,
        expected=Observation(succeeded=False, errors=frozenset({"SourceTopicsExpanded"})),
        outcome="Reported for each topic before the application stops. Nothing is changed.",
    ),
    Step(
        title="Autoscaling is on",
        description="With the feature on, the internal topics are expanded, too, downstream topics first: "
        "when a new partition gets records, all topics after it are expanded already.",
        actions=(
            Edit(_REVENUE, "partition.autoscaling.enabled: false", "partition.autoscaling.enabled: true"),
        ),
        command=UP,
        expected=Observation(
            planned={"expand": 4},
            waves=(3, 1),
            expanded={"revenue": 6, _REPARTITION: 6, _STATE: 6, _BUFFER: 6},
        ),
        outcome="The sink and the changelogs were expanded first, then the repartition topic before them.",
    ),
    Step(
        title="An internal topic is expanded by hand",
        description="A user gives a repartition topic more partitions than its source has. Kafka cannot "
        "remove partitions, so a tool that must reach 6 could only delete and re-create the topic.",
        actions=(Expand(_REPARTITION, 8),),
        command=PREVIEW,
        expected=Observation(succeeded=False, errors=frozenset({"OverPartitionedInternalTopic"})),
        outcome="Refused; nothing is replaced. The error says how to make the counts equal again.",
    ),
    Step(
        title="The fix",
        description="The fix that the error names: expand the source to 8, too.",
        actions=(Expand("payments", 8),),
        command=UP,
        expected=Observation(
            planned={"expand": 3}, waves=(3,), expanded={"revenue": 8, _STATE: 8, _BUFFER: 8}
        ),
        outcome="The other topics were expanded, too.",
    ),
    Step(
        title="An internal topic is deleted",
        description="Kafka Streams would silently re-create it, empty, and continue with wrong sums. "
        "Headwater has a record of its setup.",
        actions=(Delete(_STATE),),
        command=PREVIEW,
        expected=Observation(succeeded=False, errors=frozenset({"MissingInternalTopics"})),
        outcome="Headwater distinguishes a lost topic from a new one. Nothing is created.",
    ),
    Step(
        title="It is re-created empty",
        description="A user creates a topic with the same name, partitions and settings. The topic looks as "
        "before, but its data is gone.",
        actions=(
            Create(
                {_STATE: 8},
                {
                    "cleanup.policy": "compact,delete",
                    "retention.ms": "172800000",
                    "segment.bytes": "16777216",
                },
            ),
        ),
        command=PREVIEW,
        expected=Observation(succeeded=False, errors=frozenset({"MissingInternalTopics"})),
        outcome="Detected by its topic id.",
    ),
    Step(
        title="Continue without the lost data",
        description="A user must request it in the document, for one run.",
        actions=(Edit(_REVENUE, _SETUP, _REINITIALIZE),),
        command=UP,
        expected=Observation(),
        outcome="The empty topic is now the recorded one.",
    ),
    Step(
        title="Adopt a running application",
        description="`loyalty` has been running for a year without Headwater. Its `Topology#describe()` text "
        "becomes a document; details that the text does not have are read from its topics. The "
        "application keeps running.",
        actions=(
            Edit(_REVENUE, _REINITIALIZE, _SETUP),
            Create(
                {"loyalty-purchases-by-member-repartition": 4},
                {
                    "cleanup.policy": "delete",
                    "message.timestamp.type": "CreateTime",
                    "retention.ms": "-1",
                    "segment.bytes": "52428800",
                },
            ),
            Create(
                {"loyalty-points-changelog": 4},
                {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"},
            ),
            CopyFile("loyalty.txt", "loyalty.txt"),
            Run(
                Headwater(
                    (
                        *("import", "--describe", "loyalty.txt", "--application-id", "loyalty"),
                        *("--kafka-streams", "4.3", "--bootstrap-server", "{broker}"),
                        *("-o", "topologies/loyalty.yaml"),
                    )
                )
            ),
        ),
        command=UP,
        expected=Observation(planned={"adopt": 2}),
        outcome="Adopted with their data: not created, not replaced, not emptied. Of their settings, "
        "`pulumi up` changed only what the plan lists.",
    ),
    Step(
        title="The agent expands topics while applications run",
        description="`payments` is expanded again, without a pull request. The agent detects it within "
        "`metadata.max.age.ms`; here it checks once.",
        actions=(Expand("payments", 10),),
        command=Headwater(
            (
                "agent",
                "run",
                "topologies/revenue-by-category.yaml",
                "--bootstrap-server",
                "{broker}",
                "--once",
            )
        ),
        expected=Observation(created=1, expanded={"revenue": 10, _REPARTITION: 10, _STATE: 10, _BUFFER: 10}),
        outcome="Expanded, downstream topics first, and recorded in the agents' own topic.",
    ),
    Step(
        title="Run it on Spark",
        description="Run the same document: the revenue of each category and hour, emitted when the hour and "
        "five minutes of grace are over. The last payment is too late for its hour.",
        actions=(ProducePayments("payments.txt", "payments"),),
        command=Headwater(
            (
                *("run", "topologies/revenue-by-category.yaml", "--bootstrap-server", "{broker}"),
                *("--checkpoint", "checkpoint", "--state-dir", "state", "--until-idle"),
            ),
            with_spark=True,
        ),
        reads="revenue",
        expected=Observation(results={"books, hour 0": 42.5, "games, hour 0": 59.9}),
        outcome="The same records as from Kafka Streams, on the same internal topics.",
    ),
    Step(
        title="A Kafka Streams application follows its source topic",
        description="One program in Java, twice: one loads Headwater's library by configuration, the other "
        "does not. Their source topic is expanded from 2 to 4 partitions while they run.",
        actions=(Create({"clicks": 2}),),
        command=Java("SideBySide.java"),
        expected=Observation(created=4, expanded={"clicks": 4}),
        outcome="With the library, the application has expanded its internal topics and continues with all "
        "tasks. Without it, it has stopped.",
    ),
    Step(
        title="An edit of a topology with state",
        description="A developer adds a filter before a count. The numbers in generated names shift, so the "
        "count would begin with an empty store, without an error.",
        actions=(
            CopyFile("visits.yaml", "visits.yaml"),
            CopyFile("visits-with-filter.yaml", "visits-with-filter.yaml"),
        ),
        command=Headwater(
            ("change", "visits.yaml", "visits-with-filter.yaml", "--partitions", "page-views=4")
        ),
        expected=Observation(
            succeeded=False,
            errors=frozenset({"renamed"}),
            location="visits-with-filter.yaml:7",
            lost_stores=1,
        ),
        outcome="Reported before the deployment, with the line that keeps the state.",
    ),
    Step(
        title="A typo",
        description="`selectKey` becomes `selectKye`.",
        actions=(Edit("order-enrichment", "selectKey:", "selectKye:"),),
        command=Headwater(("validate", "topologies")),
        expected=Observation(
            succeeded=False,
            errors=frozenset({"SchemaViolation"}),
            location="topologies/order-enrichment.yaml:23",
        ),
        outcome="File, line, the text found, the texts allowed.",
    ),
)
