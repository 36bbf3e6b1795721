"""The story, step by step: a shop's topologies live through what topologies live through."""

from collections.abc import Mapping, Sequence

import attrs

from infra.cli.demo.acts import (
    PREVIEW,
    UP,
    Act,
    Bring,
    Command,
    Create,
    Delete,
    Edit,
    Expand,
    Headwater,
    Pay,
    Run,
)
from infra.cli.demo.observation import Seen

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
    """`acts` happen first; `command` is what the step is about, and `expected` what should be seen of it.

    `reads` is a topic whose records belong to what is seen.
    """

    title: str
    story: str
    acts: Sequence[Act] = ()
    command: Command
    expected: Seen
    reads: str | None = None
    outcome: str


STORY: Sequence[Step] = (
    Step(
        title="Preview",
        story="Three applications of a shop, a document each. Which internal topics do they need? The "
        "partition counts follow the source topics, which are there already.",
        command=PREVIEW,
        expected=Seen(planned={"create": 12}),
        outcome="Twelve topics would be created. Nothing is yet.",
    ),
    Step(
        title="Set up",
        story="Explicit initialization: internal topics come into being here and nowhere else, and the "
        "stack remembers their ids.",
        command=UP,
        expected=Seen(planned={"create": 12}, created=12),
        outcome="The topics exist, named, sized and configured as Kafka Streams would have made them.",
    ),
    Step(
        title="Run it again",
        story="The second run has nothing to do.",
        command=UP,
        expected=Seen(),
        outcome="Clean.",
    ),
    Step(
        title="A source topic grows, autoscaling is off",
        story="Somebody expands `payments` from 4 to 6 partitions. With the feature off, a Kafka Streams "
        "application would stop at its next rebalance.",
        acts=(
            Edit(_REVENUE, "partition.autoscaling.enabled: true", "partition.autoscaling.enabled: false"),
            Expand("payments", 6),
        ),
        command=PREVIEW,
        expected=Seen(succeeded=False, errors=frozenset({"SourceTopicsExpanded"})),
        outcome="Said before anything stops, for each topic. Nothing is changed.",
    ),
    Step(
        title="Autoscaling is on",
        story="With the feature on, the internal topics follow: the downstream ones first, so that whoever "
        "writes to a new partition finds everything behind it in place.",
        acts=(Edit(_REVENUE, "partition.autoscaling.enabled: false", "partition.autoscaling.enabled: true"),),
        command=UP,
        expected=Seen(
            planned={"expand": 4},
            waves=(3, 1),
            expanded={"revenue": 6, _REPARTITION: 6, _STATE: 6, _BUFFER: 6},
        ),
        outcome="The sink and the changelogs grew first, then the repartition topic in front of them.",
    ),
    Step(
        title="An internal topic is expanded by hand",
        story="Somebody gives a repartition topic more partitions than its source has. Kafka cannot take "
        "partitions away, and a tool that wants 6 might be tempted to delete the topic and create it anew.",
        acts=(Expand(_REPARTITION, 8),),
        command=PREVIEW,
        expected=Seen(succeeded=False, errors=frozenset({"OverPartitionedInternalTopic"})),
        outcome="Refused; nothing is replaced. The text says how the counts can agree again.",
    ),
    Step(
        title="The remedy",
        story="The fix that the error names: let the source grow to 8, too.",
        acts=(Expand("payments", 8),),
        command=UP,
        expected=Seen(planned={"expand": 3}, waves=(3,), expanded={"revenue": 8, _STATE: 8, _BUFFER: 8}),
        outcome="The other topics followed.",
    ),
    Step(
        title="An internal topic is deleted",
        story="Kafka Streams would silently create it again, empty, and go on with wrong sums. Headwater "
        "knows that it was set up.",
        acts=(Delete(_STATE),),
        command=PREVIEW,
        expected=Seen(succeeded=False, errors=frozenset({"MissingInternalTopics"})),
        outcome="A loss is not a first start. Nothing is created in its place.",
    ),
    Step(
        title="It comes back empty",
        story="Somebody repairs it by creating a topic of the same name, size and settings. From the "
        "outside it looks as if nothing had happened.",
        acts=(
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
        expected=Seen(succeeded=False, errors=frozenset({"MissingInternalTopics"})),
        outcome="Noticed by its topic id.",
    ),
    Step(
        title="Go on without the lost data",
        story="That takes somebody to say so in the document, for one run.",
        acts=(Edit(_REVENUE, _SETUP, _REINITIALIZE),),
        command=UP,
        expected=Seen(),
        outcome="The empty topic is the recorded one from now on.",
    ),
    Step(
        title="Adopt a running application",
        story="`loyalty` has been running for a year without Headwater. Its `Topology#describe()` text "
        "becomes a document; what the text does not say is read from its live topics. It keeps "
        "running meanwhile.",
        acts=(
            Edit(_REVENUE, _REINITIALIZE, _SETUP),
            Create(
                {"loyalty-purchases-by-member-repartition": 4},
                {"cleanup.policy": "delete", "retention.ms": "-1"},
            ),
            Create({"loyalty-points-changelog": 4}, {"cleanup.policy": "compact"}),
            Bring("loyalty.txt", "loyalty.txt"),
            Run(
                Headwater(
                    (
                        *("import", "--describe", "loyalty.txt", "--application-id", "loyalty"),
                        *("--bootstrap-server", "{broker}", "-o", "topologies/loyalty.yaml"),
                    )
                )
            ),
        ),
        command=UP,
        expected=Seen(planned={"adopt": 2}),
        outcome="Taken over as they are: not created, not replaced, not emptied.",
    ),
    Step(
        title="The agent follows while applications run",
        story="`payments` grows again, and nobody opens a pull request. The agent sees it within "
        "`metadata.max.age.ms`; here it looks once.",
        acts=(Expand("payments", 10),),
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
        expected=Seen(created=1, expanded={"revenue": 10, _REPARTITION: 10, _STATE: 10, _BUFFER: 10}),
        outcome="Expanded, downstream first, and written down in the agents' own topic.",
    ),
    Step(
        title="Run it on Spark",
        story="The same document, executed: revenue of each category and hour, told once an hour and five "
        "minutes of grace are over. The last payment comes too late for its hour.",
        acts=(Pay("payments.txt", "payments"),),
        command=Headwater(
            (
                *("run", "topologies/revenue-by-category.yaml", "--bootstrap-server", "{broker}"),
                *("--checkpoint", "checkpoint", "--state-dir", "state", "--until-idle"),
            ),
            with_spark=True,
        ),
        reads="revenue",
        expected=Seen(results={"books, hour 0": 42.5, "games, hour 0": 59.9}),
        outcome="What Kafka Streams would have written, on the same internal topics.",
    ),
    Step(
        title="A typing error",
        story="`selectKey` becomes `selectKye`.",
        acts=(Edit("order-enrichment", "selectKey:", "selectKye:"),),
        command=Headwater(("validate", "topologies")),
        expected=Seen(
            succeeded=False,
            errors=frozenset({"SchemaViolation"}),
            place="topologies/order-enrichment.yaml:23",
        ),
        outcome="File, line, what was found, what is allowed.",
    ),
)
