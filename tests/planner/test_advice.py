"""What fixes say about partition counts: which topics decide them, and what an expansion does to keys."""

from collections.abc import Mapping

import pytest

from headwater.compiler import compile_document
from headwater.model.problems import PLAN, errors
from headwater.planner import advice
from headwater.planner.counts import CountedApplication, CountedTopic
from tests.compiler.applications import document

TOPOLOGY = """
  - stream: {topic: orders}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
"""
REPARTITION, CHANGELOG = "app-by-customer-repartition", "app-counts-changelog"
LIVE: Mapping[str, int] = {REPARTITION: 4, CHANGELOG: 4}
NO_CONFIG: Mapping[str, str] = {}


def counted(
    config: Mapping[str, str] = NO_CONFIG,
    *,
    setup: str = "",
    live: Mapping[str, int] = LIVE,
    recorded: Mapping[str, int] = LIVE,
    records: int | None = None,
    topology: str = TOPOLOGY,
) -> CountedApplication:
    """Return the application with six partitions of its source; `live` counts internal topics."""
    settings = ", ".join(f'{key}: "{value}"' for key, value in config.items())
    text = f"application: {{id: app, config: {{{settings}}}{setup}}}\ntopology:{topology}"
    compiled = compile_document(document(text), {"orders": 6})
    assert not errors(compiled.problems)
    topics = [
        CountedTopic(
            declared=topic,
            partitions=topic.partitions or 0,
            live_partitions=live.get(topic.name),
            recorded_partitions=recorded.get(topic.name),
            live_records=records,
        )
        for topic in compiled.internal_topics
    ]
    return CountedApplication(compiled=compiled, topics=topics, caller=PLAN)


def topic_of(application: CountedApplication, name: str) -> CountedTopic:
    return next(topic for topic in application.topics if topic.name == name)


@pytest.mark.parametrize("name", [REPARTITION, CHANGELOG])
def test_the_source_topics_decide_the_counts_of_all_topics_below(name: str) -> None:
    application = counted()
    assert advice.deciding_sources(application, topic_of(application, name)) == ["orders"]
    assert (
        advice.expected_partitions(application, topic_of(application, name))
        == "6 partitions, as many as orders"
    )


def test_no_source_topic_decides_an_explicit_count() -> None:
    explicit = TOPOLOGY.replace(
        "  - groupBy: {key: value.customer, name: by-customer}",
        "  - selectKey: {key: value.customer}\n  - repartition: {name: by-customer, partitions: 8}\n"
        "  - groupByKey:",
    )
    application = counted(topology=explicit)
    for topic in application.topics:
        assert advice.deciding_sources(application, topic) == ()
        assert advice.expected_partitions(application, topic) == "8 partitions"


@pytest.mark.parametrize(
    ("application", "moves"),
    [
        pytest.param(counted(), True, id="state exists"),
        pytest.param(counted(records=0), True, id="state was recorded"),
        pytest.param(counted(recorded={}, records=0), False, id="empty, and never set up"),
        pytest.param(counted(recorded={}, live={}), False, id="still to be created"),
        pytest.param(
            counted(setup=", setup: {allowUnsafeExpansion: true}"), False, id="the loss is accepted"
        ),
        pytest.param(
            counted({"static.partitioner.class": "com.acme.Fixed"}), False, id="partitioned statically"
        ),
        pytest.param(
            counted(topology=TOPOLOGY.replace("counts}", "{store: counts, logging: false}}"), live={}),
            True,
            id="state without a changelog topic",
        ),
        pytest.param(
            counted(topology="\n  - stream: {topic: orders}\n  - to: copies\n"), False, id="no state"
        ),
    ],
)
def test_added_partitions_move_keys_away_from_state(application: CountedApplication, *, moves: bool) -> None:
    assert advice.moves_keys(application) is moves


def test_processors_keep_keys_if_the_sources_have_a_doubled_count() -> None:
    text = advice.with_processors(counted())
    assert "expand the source topics to 8 partitions" in text
    assert "`processors: 4`" in text
    assert "`processing.guarantee: exactly_once_v2`" in text
    assert advice.with_processors(counted(live={})) == ""


@pytest.mark.parametrize(
    ("config", "recorded", "option"),
    [
        ({}, LIVE, "setup.reinitialize"),
        ({}, {}, "setup.ifIncomplete"),
        ({"internal.topics.setup": "automatic"}, LIVE, None),
    ],
)
def test_a_deleted_topic_needs_an_option_with_manual_setup_only(
    config: Mapping[str, str], recorded: Mapping[str, int], option: str | None
) -> None:
    manual = {"internal.topics.setup": "manual", **config}
    application = counted(manual, recorded=recorded)
    text = advice.delete_topic(application, topic_of(application, CHANGELOG))
    assert f"--delete --topic {CHANGELOG}`" in text
    assert text.endswith("which creates it with 6 partitions.")
    assert (option is None) == ("`setup." not in text)
    assert option is None or f"`{option}: true`" in text


def test_topics_with_fewer_partitions_are_sorted() -> None:
    application = counted(live={REPARTITION: 4, CHANGELOG: 6})
    assert advice.topics_below(application.topics, 6) == [REPARTITION]
    assert advice.topics_below(application.topics, 7) == [REPARTITION, CHANGELOG]


@pytest.mark.parametrize(
    ("live", "recorded", "option"),
    [
        pytest.param(LIVE, LIVE, "reinitialize", id="set up"),
        pytest.param({CHANGELOG: 4}, LIVE, "reinitialize", id="set up, the other one is missing"),
        pytest.param(LIVE, {}, "ifIncomplete", id="never set up, both exist"),
        pytest.param({CHANGELOG: 4}, {}, "", id="never set up, the other one is missing, too"),
    ],
)
def test_with_manual_setup_a_topic_that_is_deleted_must_not_just_be_missing(
    live: Mapping[str, int], recorded: Mapping[str, int], option: str
) -> None:
    """The next run would refuse it as lost, or as one of an incomplete setup."""
    manual = counted({"internal.topics.setup": "manual"}, live=live, recorded=recorded)
    text = advice.delete_topic(manual, topic_of(manual, CHANGELOG))
    assert f"--delete --topic {CHANGELOG}`" in text
    assert ("`setup.reinitialize: true`" in text) == (option == "reinitialize")
    assert ("`setup.ifIncomplete: true`" in text) == (option == "ifIncomplete")
    automatic = counted(live=live, recorded=recorded)
    assert "`setup." not in advice.delete_topic(automatic, topic_of(automatic, CHANGELOG))
