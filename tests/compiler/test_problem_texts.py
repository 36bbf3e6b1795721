"""The texts of the compiler's problems, compared with a golden file.

`UPDATE_GOLDEN=1 pytest tests/compiler/test_problem_texts.py` rewrites it; read what changed, then commit.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from headwater.compiler import compile_document
from headwater.compiler.renumbering import origin_digests, renumbering_problems
from headwater.describe import read_description
from headwater.model.problems import Location, Problem
from headwater.model.topology import Application, DescribedTopology, TopologyDocument
from tests.compiler.applications import compiled, problems_without_lints
from tests.compiler.topologies import COGROUP, MERGED_REPARTITION, UNRELATED_COUNTS
from tests.describe.texts import SMALL

GOLDEN = Path(__file__).parent / "golden" / "problems.txt"

JOIN = """
topology:
  - stream: {topic: a%s}
  - stream: {topic: b%s}
  - join: {from: a, with: b, window: {difference: 1h}, name: j, storeName: s}
"""
PLAIN = JOIN % (", as: a", ", as: b")
WIDE = "}\n  - repartition: {name: %s-wide, partitions: %d, as: %s"
WITH_REPARTITION = "  - stream: {topic: c}\n  - repartition: {name: r}\n  - to: {topic: o}\n"
LONG = "topology: [{stream: {topic: a}}, {repartition: {name: %s}}, {to: {topic: o}}]"
PATTERN = "topology: [{stream: {pattern: '%s'}}, {groupBy: {name: by}}, {count: {materialized: c}}]"
FOLLOW = (
    "topics: {%s: {partitions: follow}}\ntopology: [{stream: {topic: a}}, {filter: {}}, {to: {topic: a}}]"
)
STREAMS = "application: {id: app, protocol: streams}"
REUSED_SOURCE = """
application: {id: app, protocol: streams, config: {topology.optimization: reuse.ktable.source.topics}}
topology:
  - table: {topic: a, materialized: kept}
  - toStream: {as: changes}
  - stream: {topic: b}
  - merge: {with: changes}
  - to: {topic: o}
"""
UNUSED = "topology: [{addStateStore: {name: s}}, {stream: {topic: a}}, {to: {topic: o}}]"
GLOBAL = "topology: [{globalTable: {topic: g, as: g}}, {stream: {topic: a}}, {to: {topic: o}}]"
WINDOWED = """
application: {id: app, config: {%s}}
topology:
  - stream: {topic: a}
  - groupByKey: {as: grouped}
  - windowedBy: {from: grouped, tumbling: {size: 1h}, as: windowed}
  - count: {from: windowed, materialized: hourly}
  - count: {from: windowed, materialized: {store: kept, logging: {retention.ms: 5}}}
  - count: {from: grouped, materialized: plain}
"""
VERSIONED = """
application: {id: app, config: {%s}}
topology:
  - table: {topic: a, materialized: {supplier: {name: facts, kind: versionedKeyValue, retention: 1h}}}
"""
RETAINED = """
topology:
  - table: {topic: a, materialized: {store: facts, retention: 10m}}
  - groupBy: {name: by}
  - count: {materialized: {retention: 1h}}
"""
REFUSED_PROCESSOR = """
topology:
  - addSource: {name: s, topic: a}
  - addStateStore: {name: seen, processors: [missing]}
"""
EXACTLY_ONCE = "processing.guarantee: exactly_once_v2"
LINEAR_HASH = "static.partitioner.class: linear-hash, static.partitioner.initial.partitions"
PROCESSORS = """
application: {id: app, processors: 3, config: {%s}}
topology:
  - stream: {topic: a}
  - groupByKey: {}
  - count: {materialized: %s}
"""
REUSED_BY_PROCESSORS = """
application: {id: app, processors: 3, config: {topology.optimization: all, %s}}
topology:
  - table: {topic: a, materialized: kept}
  - toStream: {}
  - to: {topic: o}
"""
PARTITIONED_BY_A_CLASS = """
application: {id: app, processors: 3, config: {%s}}
topology:
  - stream: {topic: a}
  - repartition: {name: r, partitioner: "shop.tenants:ByTenant"}
  - groupByKey: {}
  - count: {materialized: c}
"""
LIBRARY = """
application:
  id: app
  config:
    default.client.supplier: io.headwater.streams.HeadwaterClientSupplier
    static.partitioner.class: initial-hash
    static.partitioner.initial.partitions: 3
%s
topology:
  - stream: {topic: a}
  - repartition: {name: r, %s}
  - groupByKey: {}
  - windowedBy: {tumbling: {size: 1h}}
  - count: {materialized: c}
  - toStream: {as: counts}
  - to: {from: counts, topic: o}
  - filter: {from: counts}
  - to: {topic: p%s}
"""
LIBRARY_CONFIG = "    producer.partitioner.class: io.headwater.streams.partitioning.StaticPartitioner"
STATELESS = """
application: {id: app, processors: 3, config: {%s}}
topology: [{stream: {topic: a}}, {to: {topic: o}}]
"""
OBSERVED = """
application: {id: app, processors: 3}
observed:
  unknown: [subtopologies]
  topics: {counts-changelog: {kind: changelog, partitions: 3}}
  sources: {a: 3}
"""
ADDED_AGAIN = """
application: {id: app, kafkaStreams: 4.3.1}
topology:
  - addReadOnlyStateStore: {store: {name: prices, shared: true}, topic: a, sourceName: s, name: p}
  - addSource: {name: t, topic: b}
  - addProcessor: {name: q, parents: [t], stores: [{name: prices, shared: true}]}
"""
BOTH = {"a": 3, "b": 5}

DOCUMENTS: dict[str, tuple[str, Mapping[str, int]]] = {
    "sources not co-partitioned, not checked": (PLAIN, BOTH),
    "sources not co-partitioned": (PLAIN + WITH_REPARTITION, {**BOTH, "c": 1}),
    "explicit count differs from a source": (JOIN % (WIDE % ("a", 4, "a"), ", as: b"), BOTH),
    "explicit counts differ": (JOIN % (WIDE % ("a", 4, "a"), WIDE % ("b", 3, "b")), BOTH),
    "count depends on the application id": (MERGED_REPARTITION, {"a": 5, "b": 2}),
    "source missing": (PLAIN, {"a": 3}),
    "global topic missing": (GLOBAL, {"a": 3}),
    "name too long": (LONG % ("n" * 240), {"a": 3}),
    "name with illegal characters": (LONG % "'a b'", {"a": 3}),
    "pattern matches nothing": (PATTERN % "src-.*", {"a": 3}),
    "pattern not evaluated": (PATTERN % "(a)\\1", {"a": 3}),
    "pattern matches the own topics": (PATTERN % "a|app-.*", {"a": 3, "app-by-repartition": 3}),
    "follows itself": (FOLLOW % "a", {}),
    "follows nothing": (FOLLOW % "z", {"a": 3}),
    "read-only store added again": (ADDED_AGAIN, BOTH),
    "store unused": (UNUSED, {"a": 3}),
    "retention does not reach windows": (WINDOWED % "topic.retention.ms: 3600000", {"a": 3}),
    "compaction lag does not reach versions": (VERSIONED % "topic.min.compaction.lag.ms: 1", {"a": 3}),
    "compaction lags contradict each other": (VERSIONED % "topic.max.compaction.lag.ms: 1", {"a": 3}),
    "retention without windows": (RETAINED, {"a": 3}),
    "store unused because its processor is refused": (REFUSED_PROCESSOR, {"a": 3}),
    "cogroup not co-partitioned": (COGROUP + WITH_REPARTITION, {"a": 3, "b": 5, "c": 1}),
    "reads nothing": ("topology: [{addStateStore: {name: s}}]", {}),
    "streams protocol: not co-partitioned": (STREAMS + PLAIN, BOTH),
    "streams protocol: source missing": (STREAMS + PLAIN, {"a": 3}),
    "streams protocol: pattern": (f"{STREAMS}\n{PATTERN % 'a'}", {"a": 3}),
    "streams protocol: unrelated explicit counts differ": (
        STREAMS + UNRELATED_COUNTS,
        {"a": 1, "b": 1, "c": 7, "d": 2},
    ),
    "streams protocol: source topic as changelog has too few partitions": (REUSED_SOURCE, BOTH),
    "streams protocol: cogroup": (STREAMS + COGROUP, {"a": 3, "b": 3}),
    "processors without transactions": (PROCESSORS % ("", "c"), {"a": 3}),
    "processors without a changelog topic": (
        PROCESSORS % (EXACTLY_ONCE, "{store: c, logging: false}"),
        {"a": 3},
    ),
    "processors restored from a source topic": (REUSED_BY_PROCESSORS % EXACTLY_ONCE, {"a": 3}),
    "a library whose partitioner is not used": (LIBRARY % ("", "partitions: 3", ""), {"a": 3}),
    "a library with other partitions": (
        LIBRARY % (LIBRARY_CONFIG, 'partitioner: "shop.tenants:ByTenant"', ", partitioner: 'shop:ByKey'"),
        {"a": 3},
    ),
    "processors with a class that partitions": (PARTITIONED_BY_A_CLASS % EXACTLY_ONCE, {"a": 3}),
    "processors of another linear-hash": (
        PROCESSORS
        % (
            f"{EXACTLY_ONCE}, {LINEAR_HASH}: 4",
            "c",
        ),
        {"a": 3},
    ),
    "processors without state": (STATELESS % EXACTLY_ONCE, {"a": 3}),
    "processors of an observed application": (OBSERVED, {"a": 3}),
}

TEXTS = {
    "an incomplete text": "\n".join(SMALL.splitlines()[:-4]),
    "no text": "hello",
    "an imported text without details": SMALL,
}


def rendered(title: str, problems: tuple[Problem, ...]) -> str:
    lines = [f"=== {title}"]
    for problem in problems:
        lines += [
            f"{problem.severity.value} {problem.code} at {problem.location or 'no location'}",
            f"  topic {problem.topic}, node {problem.node}",
            f"  {problem.summary}",
            f"  expected: {problem.expected}",
            f"  found:    {problem.found}",
            f"  why:      {problem.why}",
            f"  fix:      {problem.fix}",
        ]
    return "\n".join(lines) + "\n"


def of_text(text: str) -> tuple[Problem, ...]:
    nodes, problems = read_description(text, "app.txt")
    application = Application("app", Location("app.yaml"))
    described = DescribedTopology(nodes, Location("app.yaml", 3, 5))
    return (
        problems
        or compile_document(TopologyDocument(application, described=described), {"orders": 3}).problems
    )


def renumbered() -> tuple[Problem, ...]:
    topology = "topology: [{stream: {topic: a}}, %s{groupByKey: {}}, {count: {}}]"
    before = compiled(topology % "", {"a": 1})
    recorded = origin_digests(before)
    return renumbering_problems(recorded, compiled(topology % "{filter: {}}, ", {"a": 1}))


def test_every_problem_has_the_golden_text() -> None:
    parts = [
        rendered(title, problems_without_lints(compiled(text, counts)))
        for title, (text, counts) in DOCUMENTS.items()
    ]
    parts += [rendered(title, of_text(text)) for title, text in TEXTS.items()]
    parts.append(rendered("renumbered", renumbered()))
    text = "\n".join(parts)
    if "UPDATE_GOLDEN" in os.environ:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_every_problem_is_complete() -> None:
    problems = [
        p for text, counts in DOCUMENTS.values() for p in problems_without_lints(compiled(text, counts))
    ]
    for problem in problems:
        assert problem.application == "app"
        assert problem.expected
        assert problem.found
        assert problem.why.endswith(".")
        assert problem.fix.endswith(".")
