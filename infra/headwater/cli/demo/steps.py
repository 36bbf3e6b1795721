"""The steps of the demo: what happens to the topologies of a shop over time."""

from collections.abc import Mapping, Sequence

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
from headwater.cli.demo.observation import Observation

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
