"""The preparation of a new version finds what is published, and prints what is left to do."""

import pytest

from headwater.model.versions import SUPPORTED, KafkaStreamsVersion
from headwater.toolchain.kafka import PINNED_VERSIONS
from tests.oracle import new_version
from tests.oracle.config_table import CLIENTS
from tests.oracle.new_version import candidates, changed_configs, pinned_project

_KNOWN = (KafkaStreamsVersion(4, 2, 2), KafkaStreamsVersion(4, 3, 1))
_EMPTY: dict[str, dict[str, object]] = {key: {} for key in (*CLIENTS, "rules")}


@pytest.mark.parametrize(
    ("published", "found"),
    [
        (["4.2.2", "4.3.1"], []),
        (["4.3.1", "4.4.0", "4.4.0-rc1"], ["4.4.0"]),
        (["4.10.0", "4.9.1", "4.9.0"], ["4.9.1", "4.10.0"]),
        (["4.2.3", "4.3.0", "3.9.9"], ["4.2.3"]),
    ],
)
def test_later_releases_and_patches_are_found(published: list[str], found: list[str]) -> None:
    assert candidates(published, _KNOWN) == found


def test_changed_configs_are_named() -> None:
    old = {**_EMPTY, "streams": {"a": {"type": "INT"}, "b": {"type": "INT"}, "c": {}}}
    new = {**_EMPTY, "streams": {"a": {"type": "LONG"}, "b": {"type": "INT"}, "d": {}}, "rules": {"set": 1}}
    assert list(changed_configs(old, new)) == [
        "streams a: {'type': 'INT'} -> {'type': 'LONG'}",
        "streams c: removed",
        "streams d: new, {}",
        "the rules of `StreamsConfig` for its clients",
    ]


def test_a_broker_is_pinned_as_the_newest_one() -> None:
    newest = PINNED_VERSIONS[-1]
    pinned = new_version.PINNED / f"kafka-{newest.rpartition('.')[0]}.xml"
    project = pinned_project(pinned.read_text(encoding="utf-8"), newest, "9.8.7")
    assert project.count("<version>9.8.7</version>") == 2
    assert newest not in project


@pytest.mark.parametrize(
    ("version", "similar"),
    [("4.3.9", "4.3.1"), ("4.1.9", PINNED_VERSIONS[-1]), ("9.8.7", PINNED_VERSIONS[-1])],
)
def test_a_patch_is_pinned_as_its_release(version: str, similar: str) -> None:
    assert new_version.similar_version(version) == similar


@pytest.mark.parametrize("version", ["4.5", "trunk", "4.5.0-rc1"])
def test_a_version_without_all_numbers_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["new_version", version])
    with pytest.raises(SystemExit) as refused:
        new_version.main()
    assert refused.value.code == 2


@pytest.mark.oracle
def test_a_comparison_prints_what_is_left_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = str(SUPPORTED[-1])
    monkeypatch.setattr("sys.argv", ["new_version", newest, "--topologies", "5", "--without-broker"])
    new_version.main()
    printed = capsys.readouterr().out
    assert f"Headwater and {newest}, 1 random topologies\nno difference" in printed
    assert f"Neighbors {SUPPORTED[-2]} and {newest}" in printed
    assert f"[ ] HEADWATER_KAFKA={newest} UPDATE_GOLDEN=1" in printed
