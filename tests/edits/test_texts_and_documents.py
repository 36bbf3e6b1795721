"""A text of `Topology#describe()`, compared with a document: what a text does not show is no difference."""

from pathlib import Path

import pytest

from tests.edits.change_command import headwater, read, verdicts, write

_DOCUMENT = """
application: {id: app, kafkaStreams: "4.3", config: {num.stream.threads: 2}}
topology:
  - stream: {topic: in, offsetReset: latest, timestamp: value.at, serdes: {key: string, value: json}}
  - filter: {where: value.a > 1}
  - groupByKey:
  - count:
  - toStream:
  - to: {topic: out, serdes: {key: string, value: long}, partitioner: "shop:ByRegion"}
"""
_COUNT = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
_OPTIONS = ("--partitions", "in=4", "--format", "json")


def _text_of(folder: Path, document: str) -> str:
    described = headwater(write(folder / "described.yaml", document), command="describe")
    return write(folder / "described.txt", described.stdout)


@pytest.mark.parametrize("is_text_first", [True, False])
def test_a_text_of_the_same_topology_shows_no_edit(is_text_first: bool, tmp_path: Path) -> None:  # noqa: FBT001
    sides = (_text_of(tmp_path, _DOCUMENT), write(tmp_path / "app.yaml", _DOCUMENT))
    found = read(headwater(*(sides if is_text_first else reversed(sides)), *_OPTIONS))
    (application,) = found["applications"]

    assert verdicts(found) == {f"app-{_COUNT}-changelog": "kept"}
    assert (application["operators"], application["settings"]) == ([], [])
    assert "was edited" not in " ".join(application["remarks"])
    assert "must be the same before and after" in application["topics"][0]["why"]


def test_the_line_that_keeps_a_name_is_found_for_a_text(tmp_path: Path) -> None:
    after = write(tmp_path / "app.yaml", _DOCUMENT.replace("  - filter", "  - peek:\n  - filter"))
    found = read(headwater(_text_of(tmp_path, _DOCUMENT), after, *_OPTIONS))
    (application,) = found["applications"]

    assert list(verdicts(found).values()) == ["renamed"]
    assert [line["document"] for line in application["lines"]] == [f"materialized: {_COUNT}"]
    assert [(each["operator"], each["before"]) for each in application["operators"]] == [
        ("KSTREAM-PEEK-0000000001", None)
    ]
