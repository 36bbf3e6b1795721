"""Notes about an upgrade that do not follow from comparing topologies."""

from typing import Any

import attrs
import pytest

from headwater.model.topology import Application
from headwater.model.versions import KafkaStreamsVersion, read_any_version
from headwater.planner.upgrade.notes import how_to_keep, unseen_differences, upgrade_notes
from tests.compiler.applications import document

MERGED = "application: {id: app, config: {topology.optimization: all}}\ntopology: [{stream: orders}]"
FIX = "__enable.process.processValue.fix__"


def version(text: str) -> KafkaStreamsVersion:
    found = read_any_version(text)
    assert found is not None
    return found


def application(release: str, **config: Any) -> Application:  # noqa: ANN401 - values of configs
    made = document(MERGED).application
    return attrs.evolve(made, kafka_streams=version(release), config={**made.config, **config})


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("3.3.1", "3.4.0", ["upgrade.from"]),
        ("3.4.0", "3.9.0", []),
        ("3.9.0", "4.0.0", ["Java 11", FIX]),
        ("3.0.0", "4.1.0", ["upgrade.from", "Java 11", FIX]),
        ("4.0.0", "4.2.0", []),
    ],
)
def test_notes_depend_on_the_releases_between(before: str, after: str, words: list[str]) -> None:
    found = list(upgrade_notes(application(before), version(after)))
    assert len(found) == len(words)
    assert all(word in note for word, note in zip(words, found, strict=True))


def test_first_restart_is_with_the_version_that_runs() -> None:
    (old,) = upgrade_notes(application("3.0.0"), version("3.4.0"))
    assert '`upgrade.from: "3.0"`' in old


def test_a_flag_that_gets_an_effect_is_removed_to_keep_the_topics() -> None:
    flagged = application("4.0.0", **{FIX: " TRUE "})
    assert FIX in how_to_keep(flagged, version("4.2.0"))
    assert "repartition" in how_to_keep(application("4.2.0"), version("4.3.0"))
    assert how_to_keep(application("4.3.0"), version("4.4.0")) == ""


def test_no_difference_is_unseen_without_an_upgrade() -> None:
    assert unseen_differences(application("4.2.0"), version("4.2.0"), None) == ()
    unseen = unseen_differences(application("3.9.0"), version("4.3.0"), None)
    assert unseen
    assert len(set(unseen)) == len(unseen)
