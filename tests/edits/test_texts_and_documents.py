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


_FOREIGN_KEYS = """
application: {id: app, kafkaStreams: "4.3"}
topology:
  - table: {topic: in, as: l, materialized: l}
  - table: {topic: other, as: r, materialized: r}
  - join: {from: l, with: r, foreignKey: true}
  - toStream:
  - to: out
"""


def _reverse_nodes(text: str) -> str:
    """Return a text with the nodes of each sub-topology in reverse, each with its lists."""
    lines, nodes = list[str](), list[list[str]]()

    def complete() -> None:
        lines.extend(line for node in reversed(nodes) for line in node)
        nodes.clear()

    for line in filter(str.strip, text.splitlines(keepends=True)):
        if line.split(":")[0].strip() in {"Topologies", "Sub-topology"}:
            complete()
            lines.append(line)
        elif line.strip().startswith(("-->", "<--")):
            nodes[-1].append(line)
        else:
            nodes.append([line])
    complete()
    return "".join(lines)


def test_the_order_of_nodes_decides_nothing(tmp_path: Path) -> None:
    """Documents from code have the nodes of a text in another order. Two nodes use the left table's store."""
    text = Path(_text_of(tmp_path, _FOREIGN_KEYS))
    reverse = _reverse_nodes(text.read_text())
    assert sorted(reverse.split()) == sorted(text.read_text().split())
    assert reverse.split() != text.read_text().split()

    found = read(headwater(write(tmp_path / "app.yaml", _FOREIGN_KEYS), write(text, reverse), *_OPTIONS))
    assert set(verdicts(found).values()) == {"kept"}


def test_a_store_that_a_user_has_renamed_keeps_its_state_with_its_former_name(tmp_path: Path) -> None:
    def text(store: str) -> str:
        folder = tmp_path / store
        folder.mkdir()
        return _text_of(folder, _DOCUMENT.replace("- count:", f"- count: {{materialized: {store}}}"))

    found = read(headwater(text("counts"), text("totals"), "--application-id", "app", *_OPTIONS))
    (topic,) = found["applications"][0]["topics"]
    assert (topic["verdict"], topic["former"]) == ("renamed", "app-counts-changelog")
    assert topic["first"].startswith("Name the store exactly `counts` again. Or keep the new name, and copy")
