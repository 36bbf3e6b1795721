"""The translator supports more of the language than the recorded cases use."""

from typing import Any

import pytest
import yaml

from headwater.spec import parse_document
from tests.oracle.case_topologies.translation import translate


def calls(text: str) -> list[dict[str, Any]]:
    """The calls without their serdes `{key: string, value: string}`."""
    document = translate(_dedented(text), "app")
    assert not parse_document(document).problems
    return [
        {operator: _short(options)} for step in document["topology"] for operator, options in step.items()
    ]


def _short(options: dict[str, Any] | None) -> dict[str, Any] | None:
    strings = {"key": "string", "value": "string"}
    kept = {key: value for key, value in (options or {}).items() if value != strings}
    return kept or None


def _dedented(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


def same(text: str, expected: str) -> None:
    assert calls(text) == yaml.safe_load(expected)


@pytest.mark.parametrize(
    ("line", "window"),
    [
        ("tumbling size=1h grace=5m", "{tumbling: {size: 1h, grace: 5m}}"),
        ("hopping size=1m advance=20s grace=0s", "{hopping: {size: 1m, advance: 20s, grace: 0s}}"),
        ("sliding difference=10s grace=30s", "{sliding: {difference: 10s, grace: 30s}}"),
        ("session gap=30s grace=10s", "{session: {gap: 30s, grace: 10s}}"),
        ("unlimited", "{unlimited: null}"),
        (
            "tumbling size=1s grace=0s emit=on-window-close",
            "{tumbling: {size: 1s, grace: 0s}, emit: onWindowClose}",
        ),
        (
            "session gap=1s grace=0s emit on-window-close",
            "{session: {gap: 1s, grace: 0s}, emit: onWindowClose}",
        ),
    ],
)
def test_windows(line: str, window: str) -> None:
    steps = calls(f"stream a (string,string)\ngroupByKey\nwindowedBy {line}\ncount")
    assert steps[2] == {"windowedBy": yaml.safe_load(window)}


@pytest.mark.parametrize(
    ("options", "materialized"),
    [
        ("store=s", "s"),
        ("", "null"),
        ("(string,long)", "{serdes: {key: string, value: long}}"),
        ("store=s type=in-memory", "{store: s, type: in-memory}"),
        ("store=s retention=60s", "{store: s, retention: 60s}"),
        ("store=s logging=off caching=off", "{store: s, logging: false, caching: false}"),
        (
            'store=s logging={cleanup.policy: "compact,delete", retention.ms: 5}',
            "{store: s, logging: {cleanup.policy: 'compact,delete', retention.ms: '5'}}",
        ),
        (
            "store=persistentWindowStore(s, 60s, 10s, false)",
            "{supplier: {name: s, kind: window, retention: 60s, windowSize: 10s, retainDuplicates: false}}",
        ),
        (
            "store=s type=in-memory retention=60s",
            "{supplier: {name: s, kind: window, type: in-memory, retention: 60s, windowSize: 10s}}",
        ),
    ],
)
def test_stores(options: str, materialized: str) -> None:
    steps = calls(
        f"stream a (string,string)\ngroupByKey\nwindowedBy tumbling size=10s grace=0s\ncount {options}"
    )
    assert (steps[3]["count"] or {}).get("materialized") == yaml.safe_load(materialized)


def test_a_versioned_table_joined_with_a_grace_period() -> None:
    same(
        """
        t = table rates (string,string)  store=persistentVersionedKeyValueStore(rates-store, 1h)
        stream orders (string,string)
        leftJoin t  (x,y) -> x + y  name=priced grace=30s
        """,
        """
        - table:
            topic: rates
            materialized: {supplier: {kind: versionedKeyValue, name: rates-store, retention: 1h}}
            as: t
        - stream: {topic: orders}
        - leftJoin: {with: t, grace: 30s, name: priced}
        """,
    )


def test_arguments_are_called_after_the_receiver_and_before_the_call() -> None:
    same(
        """
        stream a (string,string)
        outerJoin (stream b (string,string) ; selectKey (k,v) -> v)  (x,y) -> x
          window before=1s after=2s grace=3s  name=j store=s logging=off
        """.replace("\n          window", "  window"),
        """
        - stream: {topic: a, as: a}
        - stream: {topic: b}
        - selectKey: {as: stream}
        - outerJoin: {from: a, with: stream, window: {before: 1s, after: 2s, grace: 3s}, name: j,
                      storeName: s, logging: false}
        """,
    )


def test_chains_of_branches_run_after_the_split() -> None:
    same(
        """
        stream a (string,string)
        split
          x = branch (k,v) -> v == "1;2"
          branch (k,v) -> v > "1"  name=big -> mapValues v -> upper(v) ; to big (string,string)
          default
        x to small (string,string)
        """,
        """
        - stream: {topic: a}
        - split: {branches: [{as: x}, {name: big, as: big}], default: true}
        - mapValues: {from: big}
        - to: {topic: big}
        - to: {from: x, topic: small}
        """,
    )


def test_loops_and_numbered_names() -> None:
    line = calls("for j in 1..3: stream in-{j} (string,string) ; groupByKey ; count store=c-{j+1}")
    assert [step["stream"]["topic"] for step in line if "stream" in step] == ["in-1", "in-2", "in-3"]
    assert line[2] == {"count": {"materialized": "c-2"}}
    block = calls("for j in 1..2:\n    s = stream in-{j} (string,string)\n    s to out-{j} (string,string)")
    assert [step["to"]["topic"] for step in block if "to" in step] == ["out-1", "out-2"]


def test_suppressions() -> None:
    same(
        """
        table a (string,string)
        suppress until-time-limit limit=5s buffer=records:100 shut-down-when-full name=late logging=off
        """,
        """
        - table: {topic: a}
        - suppress: {until: timeLimit, timeLimit: 5s, name: late, logging: false, maxRecords: 100,
                     whenFull: shutDown}
        """,
    )


def test_tables_grouped_again_and_changed() -> None:
    same(
        """
        addStateStore s (string,long)
        table a (string,string)
        mapValues v -> v + "!"  store=shouted
        transformValues adder(s, +1)  stores=[s] name=tv
        groupBy (k,v) -> (v, k)  (string,long)  name=by
        aggregate init="" add (k,v,agg) -> agg + v  remove (k,v,agg) -> agg  name=n store=sums
        toStream (k,v) -> v  name=out
        """,
        """
        - addStateStore: {name: s, serdes: {key: string, value: long}}
        - table: {topic: a}
        - mapValues: {materialized: shouted}
        - transformValues: {stores: [s], name: tv}
        - groupBy: {name: by, serdes: {key: string, value: long}}
        - aggregate: {name: n, materialized: sums}
        - toStream: {name: out, selectKey: true}
        """,
    )


def test_sources_by_list_pattern_and_policy_and_dynamic_sinks() -> None:
    same(
        """
        stream /in-.*/ (string,string)  name=all offsetReset=latest
        to (k,v,ctx) -> v  name=router
        """,
        """
        - stream: {pattern: "in-.*", name: all, offsetReset: latest}
        - to: {extractor: <object>, name: router}
        """,
    )


def test_processor_api() -> None:
    same(
        """
        addSource in [a, b] (string,string)
        addProcessor p = adder(s, +1)   parents=[in]
        addStateStore s (string,long) kind=window retention=1h size=9s duplicates=on logging={segment.ms: 5}
        connectProcessorAndStateStores p [s]
        addGlobalStore g (string,long) topic=everywhere name=keeper
        addSink out results (string,string)  parents=[p]
        """,
        """
        - addSource: {name: in, topics: [a, b]}
        - addProcessor: {name: p, parents: [in]}
        - addStateStore: {name: s, serdes: {key: string, value: long}, logging: {segment.ms: "5"},
                          kind: window, retention: 1h, windowSize: 9s, retainDuplicates: true}
        - connectProcessorAndStateStores: {processor: p, stores: [s]}
        - addGlobalStore:
            {store: {name: g, serdes: {key: string, value: long}}, topic: everywhere, name: keeper}
        - addSink: {name: out, topic: results, parents: [p]}
        """,
    )


def test_separate_cogroups() -> None:
    steps = calls(
        """
        a = stream a (string,string) ; groupByKey
        b = stream b (string,string) ; groupByKey
        a cogroup (k,v,agg) -> agg + v ; cogroup b (k,v,agg) -> agg - v
        windowedBy session gap=5s grace=0s
        aggregate init="" store=first
        cogroup b (k,v,agg) -> agg ; aggregate init=""
        """
    )
    cogroups = [step["cogroup"] for step in steps if "cogroup" in step]
    assert cogroups == [{"from": "a"}, {"with": "b"}, {"from": "b"}]


def test_lines_that_are_not_calls_are_skipped() -> None:
    text = """
        config topic.segment.ms=5
        stream a (string,string)   -- a comment ; not a call
        note: b
        and in the same application, unconnected:
        stream c (string,string)
    """
    same(text, "[stream: {topic: a}, stream: {topic: c}]")
    assert translate(_dedented(text), "app")["application"]["config"] == {"topic.segment.ms": "5"}
