"""Fixes of problems of one topology are followed: the problem is gone, and there is no other one."""

from collections.abc import Callable, Mapping

import pytest

from headwater.compiler import compile_document
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import PLAN, Caller, Problem, ProblemCode, Severity
from headwater.spec import load_text
from tests.advice.topologies import (
    CORRECTIONS,
    COUNTS,
    ENRICHED,
    EQUAL,
    FOREIGN_KEY,
    Correction,
    edited,
)
from tests.compiler.topologies import MERGED_REPARTITION

_HINTS = {ProblemCode.RENUMBERING_HAZARD, ProblemCode.NULL_KEYS_DROPPED, ProblemCode.MISSING_DETAIL}


def _compiled(text: str, counts: Mapping[str, int] = EQUAL, caller: Caller = PLAN) -> CompiledApplication:
    text = text if "application:" in text else f"application: {{id: app}}\n{text}"
    loaded = load_text(text, "app.yaml")
    assert not [each for each in loaded.problems if each.severity is Severity.ERROR], loaded.problems
    return compile_document(loaded.documents[0], counts, caller)


def _faults(application: CompiledApplication) -> list[Problem]:
    return [problem for problem in application.problems if problem.code not in _HINTS]


def _counts(application: CompiledApplication) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in application.internal_topics}


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda each: f"{each.code}: {each.says}")
def test_a_followed_fix_of_a_topology_ends_its_problem(correction: Correction) -> None:
    before = _faults(_compiled(correction.before, correction.counts, correction.caller))
    found = [problem for problem in before if problem.code is correction.code]
    assert any(correction.says in problem.fix for problem in found), [each.fix for each in before]
    counts = correction.counts if correction.counts_after is None else correction.counts_after
    after = _faults(_compiled(correction.after, counts, correction.caller))
    known = {problem.code for problem in before if problem not in found}
    assert [problem for problem in after if problem.code not in known] == []


@pytest.mark.parametrize("text", [ENRICHED, MERGED_REPARTITION])
def test_an_explicit_count_is_the_count_with_the_present_application_id(text: str) -> None:
    """Another count would have to be expanded, or could not be removed, once the topics exist."""
    application = _compiled(text, COUNTS)
    (problem,) = _faults(application)
    assert problem.topic is not None
    assert f"Set `partitions: {_counts(application)[problem.topic]}`" in problem.fix


@pytest.mark.parametrize("id_", ["app", "orders", "shop", "x"])
def test_the_counts_of_a_foreign_key_join_do_not_depend_on_the_application_id(id_: str) -> None:
    text = f"application: {{id: {id_}}}{FOREIGN_KEY}"
    application = _compiled(text, {**COUNTS, "c": 7})
    assert _faults(application) == []
    assert _counts(application)[f"{id_}-first-repartition"] == 2


DESCRIBED = """
application: {id: app, kafkaStreams: "4.3", CONFIG}
describe:
  stores: {c: {kind: windowed, retention: 1h, overrides: {segment.ms: 60000}}}
  text: |
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [a])
          --> KSTREAM-AGGREGATE-0000000001
        Processor: KSTREAM-AGGREGATE-0000000001 (stores: [c])
          --> none
          <-- KSTREAM-SOURCE-0000000000
"""
EXPORTED = """
application: {id: app, CONFIG}
exported:
  application: {id: app, kafkaStreams: "4.3.1", protocol: classic}
  subtopologies:
    "0":
      nodes:
        KSTREAM-SOURCE-0000000000: {source: [a]}
        KSTREAM-AGGREGATE-0000000001: {parents: [KSTREAM-SOURCE-0000000000], stores: [c]}
  repartitionTopics: {}
  stores: {c: {kind: windowed, retention: 1h, overrides: {segment.ms: 60000}}}
  copartitioned: []
"""
CALLS = """
application: {id: app, kafkaStreams: "4.3", CONFIG}
topology:
  - stream: {topic: a}
  - groupByKey:
  - windowedBy: {tumbling: {size: 1h}}
  - count: {materialized: {store: c, logging: {segment.ms: 60000}}}
"""
_LOGGING, _OVERRIDES = "logging: {segment.ms: 60000}", "overrides: {segment.ms: 60000}"


@pytest.mark.parametrize(
    ("text", "says", "given"),
    [
        (CALLS, "Remove `segment.ms` from the `logging` of c", f", {_LOGGING}"),
        (
            DESCRIBED,
            "Remove `segment.ms` in the code, and from `overrides` of c below `describe.stores`",
            f", {_OVERRIDES}",
        ),
        (
            EXPORTED,
            "Remove `segment.ms` in the code, where store c is created, and export again",
            f", {_OVERRIDES}",
        ),
    ],
)
def test_a_setting_that_the_cluster_refuses_is_removed_where_it_is(text: str, says: str, given: str) -> None:
    text = text.replace("CONFIG", "clusterProfile: msk-express")
    (problem,) = _faults(_compiled(text))
    assert (problem.code, says in problem.fix) == (ProblemCode.NOT_ON_CLUSTER, True), problem.fix
    assert _faults(_compiled(edited(text, (given, "")))) == []


@pytest.mark.parametrize(
    ("text", "says", "given"),
    [
        (CALLS, "or set the store's own `logging: {retention.ms: …}`", _LOGGING),
        (
            DESCRIBED,
            (
                "or set retention.ms in the code (`withLoggingEnabled`), and in `overrides` of the store "
                "below `describe.stores`"
            ),
            _OVERRIDES,
        ),
        (
            EXPORTED,
            "or set retention.ms in the code (`withLoggingEnabled`), and export the document again",
            _OVERRIDES,
        ),
    ],
)
def test_a_computed_setting_is_declared_where_the_store_is(text: str, says: str, given: str) -> None:
    text = text.replace("CONFIG", "config: {topic.retention.ms: 86400000}")
    (problem,) = _faults(_compiled(text))
    assert (problem.code, says in problem.fix) == (ProblemCode.CONFIG_HAS_NO_EFFECT, True), problem.fix
    assert "Remove it." in problem.fix
    own = given.replace("segment.ms: 60000", "retention.ms: 86400000")
    followed = edited(text, (given, own), ("topic.retention.ms: 86400000", ""))
    application = _compiled(followed)
    assert _faults(application) == []
    assert [topic.config["retention.ms"] for topic in application.internal_topics] == ["86400000"]


OBSERVED = """
application: {id: app, kafkaStreams: "4.3", protocol: classic, config: {CONFIG}}
observed:
  sources: {a: 2}
  topics:
    counts-changelog: {kind: changelog, partitions: 2SETTINGS}
  unknown: [subtopologies]
"""


@pytest.mark.parametrize(
    ("config", "says", "settings", "has"),
    [
        (
            "replication.factor: 3",
            "Remove `replication.factor`, and declare `replicationFactor: 3` of each topic below",
            ", replicationFactor: 3",
            lambda topic: topic.replication_factor == 3,
        ),
        (
            "topic.compression.type: lz4",
            (
                "Remove `topic.compression.type`, and declare compression.type in the `config` (with all of "
                "its settings) of each topic below `observed.topics`"
            ),
            ", config: {cleanup.policy: compact, compression.type: lz4, message.timestamp.type: CreateTime}",
            lambda topic: topic.config["compression.type"] == "lz4",
        ),
    ],
)
def test_a_config_without_effect_on_observed_topics_is_declared_at_them(
    config: str, says: str, settings: str, has: Callable[[object], bool]
) -> None:
    text = OBSERVED.replace("SETTINGS", "")
    (problem,) = _faults(_compiled(text.replace("CONFIG", config)))
    assert (problem.code, says in problem.fix) == (ProblemCode.CONFIG_HAS_NO_EFFECT, True), problem.fix
    followed = _compiled(OBSERVED.replace("CONFIG", "").replace("SETTINGS", settings))
    assert _faults(followed) == []
    assert all(has(topic) for topic in followed.internal_topics)


def test_an_anchor_is_removed_with_its_aliases() -> None:
    text = "application: {id: app}\ntopology:\n  - stream: &in a\n  - to: *in\n"
    for problem in load_text(text, "app.yaml").problems:
        assert problem.fix == "Replace each `*in` by the value, and remove `&in`."
    assert not load_text(text.replace("*in", "a").replace("&in ", ""), "app.yaml").problems
