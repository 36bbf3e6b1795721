"""Topologies with a problem each, and the same topologies after the fix was followed."""

from collections.abc import Mapping

import attrs

from headwater.model.problems import OFFLINE, PLAN, Caller, ProblemCode
from tests.compiler.topologies import MERGED_REPARTITION

COUNTS = {"a": 5, "b": 2, "c": 2, "t": 2, "u": 2}
EQUAL = dict.fromkeys(COUNTS, 2)


@attrs.frozen(kw_only=True)
class Correction:
    """A topology with a problem whose fix `says` something, and the topology after it was followed."""

    code: ProblemCode
    says: str
    before: str
    after: str
    counts: Mapping[str, int] = attrs.field(factory=lambda: EQUAL)
    caller: Caller = PLAN
    counts_after: Mapping[str, int] | None = None


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


ENRICHED = """
topology:
  - table: {topic: b, as: t, materialized: t}
  - stream: {topic: a}
  - selectKey:
  - join: {with: t, name: j}
  - selectKey:
  - groupByKey: {name: g}
  - count: {materialized: c}
"""
GROUPED_TABLE = """
topology:
  - stream: {topic: a}
  - selectKey:
  - repartition: {name: first}
  - toTable: {materialized: one, as: one}
  - table: {topic: b, as: two, materialized: two}
  - join: {from: one, with: two}
  - groupBy: {name: g}
  - count: {materialized: c}
"""
FOREIGN_KEY = """
topology:
  - stream: {topic: a}
  - selectKey:
  - repartition: {name: first}
  - toTable: {materialized: one, as: one}
  - table: {topic: b, as: two, materialized: two}
  - join: {from: one, with: two, as: three}
  - table: {topic: c, as: four, materialized: four}
  - join: {from: three, with: four, foreignKey: true, name: fk}
"""
GROUPED_FOREIGN_KEY = """
topology:
  - table: {topic: b, as: one, materialized: one}
  - table: {topic: a, as: two, materialized: two}
  - join: {from: one, with: two, foreignKey: true, name: fk}
  - groupBy: {name: g}
  - count: {materialized: c}
"""
JOINED_TWICE = """
topology:
  - table: {topic: t, as: t, materialized: t}
  - table: {topic: u, as: u, materialized: u}
  - stream: {topic: a}
  - selectKey: {as: k}
  - join: {from: k, with: t}
  - join: {from: k, with: u}
"""
AGGREGATED_TWICE = """
topology:
  - table: {topic: a, materialized: a}
  - groupBy: {name: g, as: g}
  - count: {from: g, materialized: one}
  - aggregate: {from: g, materialized: two, as: two}
  - table: {topic: u, materialized: u, as: u}
  - join: {from: two, with: u}
"""
READ_TWICE = """
topology:
  - stream: {topic: a}
  - to: b
  - table: {topic: t, as: t, materialized: t}
  - stream: {topic: a}
  - join: {with: t}
"""
SUPPRESSED = """
topology:
  - stream: {topic: a}
  - groupByKey:
  - count: {materialized: counts}
  - suppress: {until: timeLimit, timeLimit: 1m, name: calm, as: calm}
  - stream: {topic: c}
  - join: {with: calm}
"""
COGROUPED = """
topology:
  - stream: {topic: b}
  - groupByKey: {as: one}
  - stream: {topic: c}
  - groupByKey: {as: two}
  - cogroup: {from: one, as: both}
  - cogroup: {from: both, with: two}
  - aggregate: {materialized: sums, as: sums}
  - stream: {topic: u}
  - join: {with: sums}
"""
CHANGED_KEYS = """
topology:
  - stream: {topic: b}
  - groupBy: {name: one, as: one}
  - stream: {topic: c}
  - groupBy: {name: two, as: two}
  - cogroup: {from: one, as: both}
  - cogroup: {from: both, with: two}
  - aggregate: {materialized: sums}
"""
SUPPLIED = """
topology:
  - stream: {topic: a}
  - groupByKey:
  - windowedBy: {tumbling: {size: 5s, grace: 10s}}
  - count: {materialized: {supplier: {name: c, kind: window, retention: KEPT, windowSize: 5s}}}
"""
OPTIMIZED = """
application: {id: app, config: {topology.optimization: merge.repartition.topics}}
topology:
  - stream: {topic: a}
  - selectKey:
  - filter: {as: f}
  - groupByKey: {from: f}
  - count: {materialized: one}
  - groupByKey: {from: f}
  - reduce: {materialized: two}
"""
MERGES = """
application: {id: app, config: {topology.optimization: merge.repartition.topics}}
topology:
  - stream: {topic: a, as: a}
  - stream: {topic: b, as: b}
  - stream: {topic: c, as: c}
  - selectKey: {from: a, as: k}
  - merge: {from: b, with: k, as: m}
  - merge: {from: c, with: m}
  - groupByKey:
  - count: {materialized: c}
"""
PATTERN = """
topology:
  - stream: {pattern: "shop-.*"}
  - selectKey:
  - groupByKey: {name: g}
  - count: {materialized: c}
"""
JOIN = """
topology:
  - stream: {topic: a, as: a}
  - stream: {topic: b, as: b}
  - join: {from: a, with: b, window: {difference: 1h}, name: j, storeName: s}
"""
REPARTITIONED = f"{JOIN}  - stream: {{topic: c}}\n  - repartition: {{name: r}}\n  - to: t\n"
FIRST = ("  - stream: {topic: a, as: a}", "  - stream: {topic: a}\n  - repartition: {name: x, as: a}")
EXPLICIT = edited(JOIN, (FIRST[0], f"{FIRST[1].replace('name: x', 'name: x, partitions: 4')}"))
SUPPLIED_JOIN = edited(
    JOIN,
    ("storeName: s", "storeName: s, logging: false, thisStore: {name: m, retention: 2h, windowSize: 2h}"),
    ("  - join", "  - leftJoin"),
)
WITH_PROCESSORS = """
application: {id: app, processors: 2, config: {processing.guarantee: exactly_once_v2}}
topology:
  - stream: {topic: a}
  - groupByKey:
  - count: {materialized: {store: c, logging: false}}
"""
WITH_STORE = "topology: [{stream: a}, {process: {name: p, stores: [{name: s, STORE}]}}]"
OWN_REPARTITION = (
    "  - selectKey:\n  - groupByKey: {name: g}",
    "  - selectKey:\n  - repartition: {name: g, partitions: 5}\n  - groupByKey:",
)
TO_TABLE = "  - toStream:\n  - repartition: {name: r}\n  - toTable: {materialized: own, as: NAME}"

CORRECTIONS = (
    Correction(
        code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
        says="Set `partitions: 5` of the `repartition` that writes it. If there is none, call `repartition` "
        "with this count before the operation, after the key is changed",
        before=ENRICHED,
        after=edited(ENRICHED, OWN_REPARTITION),
        counts=COUNTS,
    ),
    Correction(
        code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
        says="Set `partitions: 2` of the `repartition`",
        before=MERGED_REPARTITION,
        after=edited(
            MERGED_REPARTITION,
            (
                "  - groupBy: {name: second}",
                "  - selectKey:\n  - repartition: {name: second, partitions: 2}\n  - groupByKey:",
            ),
        ),
        counts=COUNTS,
    ),
    Correction(
        code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
        says="A table that is grouped, or joined by a foreign key, has no `repartition`: then set "
        "`partitions` of its inputs, app-first-repartition=2.",
        before=GROUPED_TABLE,
        after=edited(GROUPED_TABLE, ("{name: first}", "{name: first, partitions: 2}")),
        counts=COUNTS,
    ),
    Correction(
        code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
        says="of its inputs, a-first-repartition=2. The topic then gets 2 partitions: do this before it is "
        "created.",
        before=f"application: {{id: a}}{GROUPED_TABLE}",
        after=edited(
            f"application: {{id: a}}{GROUPED_TABLE}", ("{name: first}", "{name: first, partitions: 2}")
        ),
        counts=COUNTS,
    ),
    Correction(
        code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
        says="A table that is grouped has no `repartition`: then give the source topics equal counts.",
        before=GROUPED_FOREIGN_KEY,
        after=GROUPED_FOREIGN_KEY,
        counts=COUNTS,
        counts_after={**COUNTS, "b": 5},
    ),
    Correction(
        code=ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        says="Give the join a `name` that no other join has",
        before=JOINED_TWICE,
        after=edited(JOINED_TWICE, ("{from: k, with: u}", "{from: k, with: u, name: second}")),
    ),
    Correction(
        code=ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        says="or call `repartition` once before both",
        before=JOINED_TWICE,
        after=edited(
            JOINED_TWICE, ("  - selectKey: {as: k}", "  - selectKey:\n  - repartition: {name: k, as: k}")
        ),
    ),
    Correction(
        code=ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        says="Group again for each aggregation, with a `name` that no other group has",
        before=AGGREGATED_TWICE,
        after=edited(
            AGGREGATED_TWICE,
            ("materialized: a}", "materialized: a, as: a}"),
            ("  - aggregate: {from: g", "  - groupBy: {from: a, name: h, as: h}\n  - aggregate: {from: h"),
        ),
    ),
    Correction(
        code=ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        says="Read the topics with one call, name its result by `as`, and use this name in both places",
        before=READ_TWICE,
        after=edited(
            READ_TWICE,
            ("  - stream: {topic: a}\n  - to: b", "  - stream: {topic: a, as: a}\n  - to: b"),
            ("  - stream: {topic: a}\n  - join: {with: t}", "  - join: {from: a, with: t}"),
        ),
    ),
    Correction(
        code=ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        says="Before the join, call `toStream`, `repartition` and `toTable`",
        before=SUPPRESSED,
        after=edited(
            SUPPRESSED, (", name: calm, as: calm}", f", name: calm}}\n{TO_TABLE.replace('NAME', 'calm')}")
        ),
    ),
    Correction(
        code=ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        says="Before the join, call `toStream`, `repartition` and `toTable`",
        before=COGROUPED,
        after=edited(
            COGROUPED,
            (
                "{materialized: sums, as: sums}",
                f"{{materialized: sums}}\n{TO_TABLE.replace('NAME', 'sums')}",
            ),
        ),
    ),
    Correction(
        code=ProblemCode.COGROUP_COPARTITIONS_SOURCES,
        says="On each input whose key is changed, do it by `selectKey`, call `repartition`, and then "
        "`groupByKey`",
        before=CHANGED_KEYS,
        after=edited(
            CHANGED_KEYS,
            *(
                (
                    f"  - groupBy: {{name: {name}, as",
                    f"  - selectKey:\n  - repartition: {{name: {name}}}\n  - groupByKey: {{as",
                )
                for name in ("one", "two")
            ),
        ),
    ),
    Correction(
        code=ProblemCode.SUPPLIER_RETENTION_IGNORED,
        says="Set `retention: 15s` in the supplier",
        before=SUPPLIED.replace("KEPT", "6s"),
        after=SUPPLIED.replace("KEPT", "15s"),
    ),
    Correction(
        code=ProblemCode.SUPPLIER_RETENTION_IGNORED,
        says="Set `retention: 1h` next to the supplier",
        before=SUPPLIED.replace("KEPT", "1h"),
        after=SUPPLIED.replace("KEPT, windowSize: 5s}", "1h, windowSize: 5s}, retention: 1h"),
    ),
    Correction(
        code=ProblemCode.SUPPLIER_RETENTION_IGNORED,
        says="or `retention: 15s` in the supplier",
        before=SUPPLIED.replace("KEPT", "1h"),
        after=SUPPLIED.replace("KEPT", "15s"),
    ),
    *(
        Correction(code=ProblemCode.OPTIMIZATION_FAILS, says=says, before=text, after=edited(text, *edits))
        for says, text, edits in (
            (
                "Remove `merge.repartition.topics` (or `all`) from topology.optimization",
                OPTIMIZED,
                [("{topology.optimization: merge.repartition.topics}", "{}")],
            ),
            (
                "or call `repartition` right after the key change",
                OPTIMIZED,
                [("  - selectKey:", "  - selectKey:\n  - repartition: {name: r}")],
            ),
            (
                "If two groupings are below it, both can also use one named group",
                OPTIMIZED,
                [
                    ("  - groupByKey: {from: f}\n  - reduce:", "  - groupByKey: {from: f}\n  - reduce:"),
                    (
                        "  - groupByKey: {from: f}\n  - count: {",
                        "  - groupByKey: {from: f, name: g, as: g}\n  - count: {",
                    ),
                    ("  - groupByKey: {from: f}\n  - reduce: {", "  - reduce: {from: g, "),
                ],
            ),
            (
                "or call `repartition` right after the key change",
                MERGES,
                [
                    (
                        "  - selectKey: {from: a, as: k}",
                        "  - selectKey: {from: a}\n  - repartition: {name: r, as: k}",
                    )
                ],
            ),
        )
    ),
    Correction(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        says="Create the input topics (a pattern must match at least one)",
        before=PATTERN,
        after=PATTERN,
        counts_after={"shop-1": 2},
    ),
    Correction(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        says="Set `--partitions TOPIC=N` for the input topics (a pattern must match at least one)",
        before=PATTERN,
        after=PATTERN,
        caller=OFFLINE,
        counts_after={"shop-1": 2},
    ),
    Correction(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        says="or give the repartition() call explicit `partitions`",
        before=PATTERN,
        after=edited(PATTERN, OWN_REPARTITION),
    ),
    *(
        Correction(code=code, says=says, before=text, after=after, counts=COUNTS, counts_after=counts)
        for code, text in (
            (ProblemCode.UNCHECKED_COPARTITIONING, JOIN),
            (ProblemCode.NOT_COPARTITIONED, REPARTITIONED),
        )
        for says, after, counts in (
            ("Expand the smaller topics to the largest count (keys then move", text, {**COUNTS, "b": 5}),
            ("or put repartition() before the join or cogroup", edited(text, FIRST), COUNTS),
        )
    ),
    Correction(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        says="Set `partitions` of the repartition() call to 2",
        before=EXPLICIT,
        after=edited(EXPLICIT, ("partitions: 4", "partitions: 2")),
    ),
    Correction(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        says="or leave it out",
        before=EXPLICIT,
        after=edited(EXPLICIT, (", partitions: 4", "")),
    ),
    Correction(
        code=ProblemCode.LOGGING_IGNORED,
        says="Name the stores with `storeName` instead of supplying them",
        before=SUPPLIED_JOIN,
        after=edited(SUPPLIED_JOIN, (", thisStore: {name: m, retention: 2h, windowSize: 2h}", "")),
    ),
    Correction(
        code=ProblemCode.LOGGING_IGNORED,
        says="or remove `logging`",
        before=SUPPLIED_JOIN,
        after=edited(SUPPLIED_JOIN, (", logging: false", "")),
    ),
    Correction(
        code=ProblemCode.INVALID_PROCESSORS,
        says="Remove `logging: false` of the store",
        before=WITH_PROCESSORS,
        after=edited(WITH_PROCESSORS, ("{store: c, logging: false}", "c")),
    ),
    Correction(
        code=ProblemCode.INVALID_PROCESSORS,
        says="or remove `processors`",
        before=WITH_PROCESSORS,
        after=edited(WITH_PROCESSORS, ("processors: 2, ", "")),
    ),
    *(
        Correction(
            code=ProblemCode.CONFIG_HAS_NO_EFFECT,
            says=says,
            before=WITH_STORE.replace("STORE", before),
            after=WITH_STORE.replace("STORE", after),
        )
        for says, before, after in (
            ("Remove `retention`", "kind: keyValue, retention: 1h", "kind: keyValue"),
            (
                "or set `kind` to session, timestampedWindow, versionedKeyValue or window",
                "retention: 1h",
                "kind: versionedKeyValue, retention: 1h",
            ),
            (
                "Remove `windowSize`",
                "kind: session, retention: 1h, windowSize: 1m",
                "kind: session, retention: 1h",
            ),
            (
                "or set `kind` to timestampedWindow or window",
                "kind: session, retention: 1h, retainDuplicates: true",
                "kind: window, retention: 1h, windowSize: 1m, retainDuplicates: true",
            ),
        )
    ),
    Correction(
        code=ProblemCode.UNUSED_STORE,
        says="Connect it to a processor",
        before="topology: [{addStateStore: {name: s}}, {stream: a}, {process: {name: p}}]",
        after="topology: [{addStateStore: {name: s}}, {stream: a}, {process: {name: p, stores: [s]}}]",
    ),
)
