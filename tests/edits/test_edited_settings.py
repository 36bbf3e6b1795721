"""Settings of an application that were edited, stores without a verdict, and options without an effect."""

import attrs
import pytest

from headwater.compiler.configs.table import known_keys
from headwater.planner.edits import ApplicationEdit, Verdict
from headwater.planner.edits.settings import edited_settings
from headwater.report.edits.texts import edit_text
from tests.edits.sides import edit, of_one, side, verdicts

_DOCUMENT = """
application: {id: app, kafkaStreams: "4.3", config: {commit.interval.ms: 100}}
topology:
  - stream: {topic: in, offsetReset: earliest, name: source}
  - groupByKey:
  - count: {materialized: {store: counts, caching: true, type: in-memory}}
  - globalTable: {topic: table, materialized: countries}
"""
_DESCRIBED = """
application: {id: app, kafkaStreams: "4.3"}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [in])
          --> KSTREAM-SINK-0000000001
        Sink: KSTREAM-SINK-0000000001 (topic: out)
          <-- KSTREAM-SOURCE-0000000000
"""
_OBSERVED = """
application: {id: app, kafkaStreams: "4.3"}
observed:
  sources: {in: 4}
  topics: {counts-changelog: {kind: changelog, partitions: 4}}
  unknown: [subtopologies]
"""
_EXPORTED = """
application: {id: app}
exported:
  application: {id: app, kafkaStreams: "4.3.1", protocol: classic}
  subtopologies:
    "0":
      nodes:
        KSTREAM-SOURCE-0000000000: {source: [in]}
        KSTREAM-SINK-0000000001: {parents: [KSTREAM-SOURCE-0000000000], sink: out}
  repartitionTopics: {}
  stores: {}
  copartitioned: []
"""
_COMMITTED = "It counts only for partitions without a valid committed offset"


def _with_config(text: str) -> str:
    return _DOCUMENT.replace("commit.interval.ms: 100", text)


def _settings(found: ApplicationEdit) -> dict[str, tuple[str | None, str | None]]:
    return {each.key: (each.before, each.after) for each in found.settings}


@pytest.mark.parametrize("reset", ["latest", "none", "by_duration:PT1H"])
def test_another_offset_reset_counts_only_without_committed_offsets(reset: str) -> None:
    found = of_one(_DOCUMENT, _DOCUMENT.replace("earliest", reset))
    (change,) = found.operators

    assert (change.operator, change.aspect, change.before, change.after) == (
        *("source", "offset reset", "earliest", reset),
    )
    assert change.why.startswith(_COMMITTED)
    assert not found.has_changes


@pytest.mark.parametrize("prefix", ["", "consumer.", "main.consumer."])
def test_the_default_offset_reset_counts_only_without_committed_offsets(prefix: str) -> None:
    key = f"{prefix}auto.offset.reset"
    (change,) = of_one(_DOCUMENT, _with_config(f"commit.interval.ms: 100, {key}: latest")).settings

    assert (change.key, change.before, change.after) == (key, None, "latest")
    assert change.why.startswith(_COMMITTED)


def test_kafka_streams_sets_the_offset_reset_of_other_consumers_itself() -> None:
    config = "commit.interval.ms: 100, global.consumer.auto.offset.reset: latest"
    (change,) = of_one(_DOCUMENT, _with_config(config)).settings

    assert "no effect" in change.why


def test_values_that_may_be_secret_are_not_shown() -> None:
    old, new = (f"sasl.jaas.config: {word}, my.own: {word}" for word in ("hunter2", "hunter3"))
    found = edit(_with_config(old), _with_config(new))

    assert _settings(found.applications[0]) == {"sasl.jaas.config": ("set", "set"), "my.own": ("set", "set")}
    assert "hunter" not in edit_text(found)
    assert "sasl.jaas.config  changed" in edit_text(found)


def test_a_config_with_the_name_of_a_setting_of_documents_may_be_secret() -> None:
    old, new = (
        f"acls.token: {word}, setup.adopt: {word}, topics.in: {word}" for word in ("hunter2", "other")
    )
    found = edit(_with_config(old), _with_config(new))

    assert {each.key: each.before for each in found.applications[0].settings} == dict.fromkeys(
        ("acls.token", "setup.adopt", "topics.in"), "set"
    )
    assert all("does not know it" in each.why for each in found.applications[0].settings)
    assert "hunter" not in edit_text(found)


def test_a_setting_of_internal_topics_is_set_for_existing_ones_by_pulumi() -> None:
    after = _with_config("commit.interval.ms: 100, topic.retention.ms: 86400000, replication.factor: 3")
    whys = {each.key: each.why for each in of_one(_DOCUMENT, after).settings}

    assert "`pulumi up` sets it for existing ones, too" in whys["topic.retention.ms"]
    assert "topics that exist keep what they have" in whys["replication.factor"]


@pytest.mark.parametrize("prefix", ["", "producer.", "main.consumer.", "admin."])
def test_addresses_of_another_cluster_lead_to_no_state(prefix: str) -> None:
    after = _with_config(f"commit.interval.ms: 100, {prefix}bootstrap.servers: 'other:9092'")
    (change,) = of_one(_DOCUMENT, after).settings

    assert "finds none of its topics, state and offsets" in change.why


@pytest.mark.parametrize("topology", ["described", "observed"])
def test_settings_of_documents_without_calls_are_listed(topology: str) -> None:
    document = {"described": _DESCRIBED, "observed": _OBSERVED}[topology]
    after = document.replace('"4.3"', '"4.3", setup: {adopt: true}, config: {num.stream.threads: 2}')

    assert _settings(of_one(document, after)) == {
        "num.stream.threads": (None, "2"),
        "setup.adopt": (None, "true"),
    }


def test_code_without_config_may_set_any() -> None:
    after = _EXPORTED.replace("{id: app}", "{id: app, setup: {adopt: true}}")
    configured = after.replace("{id: app, setup", "{id: app, config: {num.stream.threads: 2}, setup")

    assert _settings(of_one(_EXPORTED, after)) == {"setup.adopt": (None, "true")}
    assert _settings(of_one(_EXPORTED, configured)) == {"setup.adopt": (None, "true")}
    assert _settings(of_one(configured, configured.replace("threads: 2", "threads: 3"))) == {
        "num.stream.threads": ("2", "3")
    }


def test_each_config_of_kafka_streams_has_a_meaning() -> None:
    """None of the configs that Kafka Streams knows is called unknown."""
    (document,) = side(_DOCUMENT).documents
    keys = {*known_keys(), "topic.segment.bytes", "my.own"} - {"commit.interval.ms"}
    config = {"commit.interval.ms": "100", **dict.fromkeys(keys, "a")}
    other = attrs.evolve(document, application=attrs.evolve(document.application, config=config))
    whys = {each.key: each.why for each in edited_settings(document, other)}

    assert whys.keys() == keys
    assert [key for key, why in whys.items() if "does not know it" in why] == ["my.own"]


def test_settings_of_the_document_itself_are_listed() -> None:
    after = _DOCUMENT.replace(
        "app, ", "app, setup: {adopt: true, timeout: 2m}, clusterProfile: apache-kafka, "
    )
    found = of_one(_DOCUMENT, f"{after}acls: {{principals: ['User:app']}}\nleftovers: {{keep: [app-old]}}\n")

    assert _settings(found) == {
        "acls.principals": (None, "User:app"),
        "clusterProfile": (None, "apache-kafka"),
        "leftovers.keep": (None, "app-old"),
        "setup.adopt": (None, "true"),
        "setup.timeout": (None, "2 minutes"),
    }
    assert not found.has_changes


def test_another_inner_serde_of_a_default_serde_is_another_format() -> None:
    serde = "org.apache.kafka.common.serialization.Serdes$ListSerde"
    inner = "default.list.value.serde.inner: org.apache.kafka.common.serialization.Serdes"
    config = f"default.value.serde: {serde}, {inner}$LongSerde"
    document = _DOCUMENT.replace("  - count: {", "  - reduce: {")
    before = document.replace("commit.interval.ms: 100", config)
    found = of_one(before, before.replace("$LongSerde", "$StringSerde"))

    assert verdicts(found) == {"counts": "reset"}
    assert "$StringSerde" in found.topics[0].why


def test_another_cache_or_type_of_a_store_is_named_and_keeps_the_state() -> None:
    after = _DOCUMENT.replace("caching: true, type: in-memory", "caching: false, type: rocksDB")
    found = of_one(_DOCUMENT, after)

    assert [(each.operator, each.aspect, each.before, each.after) for each in found.operators] == [
        ("counts", "cache", "yes", "no"),
        ("counts", "type of store", "in memory", "on disk"),
    ]
    assert [topic.verdict for topic in found.topics] == [Verdict.KEPT]


def test_stores_without_a_verdict_are_named_if_they_are_added_or_removed() -> None:
    unlogged = _DOCUMENT.replace("store: counts,", "store: counts, logging: false,")
    found = of_one(unlogged, unlogged.replace("counts", "totals").replace("countries", "regions"))

    assert {(each.operator, each.before is None) for each in found.operators if each.aspect == "store"} == {
        *(("totals", True), ("regions", True), ("counts", False), ("countries", False)),
    }


def test_an_option_that_does_not_apply_is_named() -> None:
    after = _DOCUMENT.replace("type: in-memory", "type: in-memory, retention: 2h")
    remarks = of_one(_DOCUMENT, after).remarks

    assert "The topology was edited (after.yaml:6:5: materialized)" in remarks[-1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: source", "name: source, as: s"),
        ("topic: table, materialized: countries", "materialized: countries, topic: table"),
    ],
)
def test_handles_and_the_order_of_options_change_nothing(old: str, new: str) -> None:
    assert old in _DOCUMENT
    found = of_one(_DOCUMENT, _DOCUMENT.replace(old, new))

    assert not found.operators
    assert not any("was edited" in remark for remark in found.remarks)
