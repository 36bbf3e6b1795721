"""`headwater change`: its inputs, formats and exit codes, and bad input."""

from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from tests.edits.change_command import FILTERED, NAMED, headwater, read, verdicts, write
from tests.edits.sides import COUNT, GENERATED


def test_exit_codes(tmp_path: Path) -> None:
    before = write(tmp_path / "before.yaml", GENERATED)
    same = headwater(before, before, "--partitions", "in=2")
    changed = headwater(before, write(tmp_path / "after.yaml", FILTERED))
    broken = headwater(before, write(tmp_path / "broken.yaml", NAMED.replace("totals", "counts")))

    assert (same.exit_code, changed.exit_code, broken.exit_code) == (
        ExitCode.DONE,
        ExitCode.DRIFT,
        ExitCode.REFUSED,
    )
    assert "The comparison is not complete." in broken.stdout


def test_folders_are_compared_application_by_application(tmp_path: Path) -> None:
    write(tmp_path / "old/a.yaml", NAMED)
    write(tmp_path / "old/b.yaml", NAMED.replace("id: app", "id: gone"))
    write(tmp_path / "new/renamed-file.yaml", NAMED.replace("counts", "amounts"))
    write(tmp_path / "new/c.yaml", NAMED.replace("id: app", "id: added"))

    found = read(headwater(str(tmp_path / "old"), str(tmp_path / "new"), "--format", "json"))

    assert (found["addedApplications"], found["removedApplications"]) == (["added"], ["gone"])
    assert verdicts(found)["app-amounts-changelog"] == "renamed"
    assert found["assumedTopics"] == ["in"]


def test_an_unknown_count_is_assumed_to_be_that_of_other_topics(tmp_path: Path) -> None:
    joined = """
application: {id: app}
topology:
  - table: {topic: table, as: t, materialized: t}
  - stream: in
  - join: {with: t}
  - to: out
"""
    before = write(tmp_path / "before.yaml", joined)

    done = headwater(before, before, "--partitions", "table=6", "--format", "json")

    assert read(done)["assumedTopics"] == ["in"]
    assert done.exit_code == ExitCode.DONE


def test_texts_of_describe(tmp_path: Path) -> None:
    texts = []
    for name, document in (("before", GENERATED), ("after", FILTERED)):
        shown = headwater(write(tmp_path / f"{name}.yaml", document), command="describe")
        texts.append(write(tmp_path / f"{name}.txt", shown.stdout))

    same = read(headwater(texts[0], texts[0], "--application-id", "app", "--format", "json"))
    found = read(headwater(*texts, "--application-id", "app", "--format", "json"))

    assert set(verdicts(same).values()) == {"kept"}
    assert "must be the same" in same["applications"][0]["topics"][0]["why"]
    assert set(verdicts(found).values()) == {"renamed"}
    assert COUNT in found["applications"][0]["topics"][0]["first"]


def test_a_text_has_the_id_and_the_version_of_the_document_on_the_other_side(tmp_path: Path) -> None:
    document = write(tmp_path / "app.yaml", GENERATED.replace("id: app", "id: orders"))
    text = write(tmp_path / "text.txt", headwater(document, command="describe").stdout)

    for sides in ((document, text), (text, document)):
        found = read(headwater(*sides, "--partitions", "in=4", "--format", "json"))
        (application,) = found["applications"]
        assert (application["applicationId"], application["formerApplicationId"]) == ("orders", None)
        assert (application["from"], application["to"]) == ("4.3.1", "4.3.1")
        assert application["rollingRestart"]
    named = read(headwater(document, text, "--application-id", "other", "--format", "json"))
    assert named["applications"][0]["formerApplicationId"] == "orders"


def test_a_document_that_names_its_version_now_is_no_change_of_the_version(tmp_path: Path) -> None:
    """Documents are asked to name the version that runs, which may be an earlier one than the default."""
    named = write(tmp_path / "named.yaml", NAMED.replace("4.3", "4.1"))
    unnamed = write(tmp_path / "unnamed.yaml", NAMED.replace(', kafkaStreams: "4.3"', ""))

    for sides in ((unnamed, named), (named, unnamed)):
        done = headwater(*sides, "--partitions", "in=4")
        assert done.exit_code == ExitCode.DONE, done.stdout
        assert "both are compared as 4.1.2" in done.stdout


def test_a_text_with_other_operators_before_a_store_is_unknown(tmp_path: Path) -> None:
    texts = []
    for name, document in (("before", NAMED), ("after", NAMED.replace("selectKey", "map"))):
        shown = headwater(write(tmp_path / f"{name}.yaml", document), command="describe")
        texts.append(write(tmp_path / f"{name}.txt", shown.stdout))

    done = headwater(*texts, "--application-id", "app", "--format", "json")

    assert verdicts(read(done))["app-counts-changelog"] == "unknown"
    assert verdicts(read(done))["app-totals-changelog"] == "kept"
    assert done.exit_code == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a.yaml",), "Name OLD and NEW"),
        (("a.yaml", "b.yaml", "c.yaml"), "Name OLD and NEW"),
        (("a.yaml", "--git", "HEAD", "--stack", "dev"), "cannot be combined"),
    ],
)
def test_usage_errors(arguments: tuple[str, ...], says: str) -> None:
    done = headwater(*arguments)

    assert done.exit_code == ExitCode.USAGE
    assert says in done.stderr


def test_files_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    good = write(tmp_path / "good.yaml", GENERATED)
    bad = write(tmp_path / "bad.yaml", GENERATED.replace("count", "cuont"))
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")

    missing = headwater(good, str(tmp_path / "missing.yaml"))
    misspelled = headwater(good, bad)
    binary = headwater(good, str(tmp_path / "bytes.txt"))
    other_text = headwater(good, write(tmp_path / "notes.txt", "no topology here"))

    codes = [each.exit_code for each in (missing, misspelled, binary, other_text)]
    assert codes == [ExitCode.PROBLEMS] * 4
    assert "cuont" in misspelled.stderr


def test_version_and_topology_are_one_report(tmp_path: Path) -> None:
    before = write(tmp_path / "old.yaml", GENERATED.replace("4.3", "4.1"))
    after = write(tmp_path / "new.yaml", FILTERED.replace("4.3", "4.1"))

    done = headwater(after, "--to", "4.3", "--before", before, "--format", "json", command="upgrade")

    found = read(done)
    assert (found["applications"][0]["from"], found["applications"][0]["to"]) == ("4.1.2", "4.3.1")
    assert set(verdicts(found).values()) == {"renamed"}
    assert any("Kafka Streams 4.1.2 becomes 4.3.1" in each for each in found["applications"][0]["remarks"])
    assert done.exit_code == ExitCode.DRIFT


_DESCRIBED = """
application: {id: app, kafkaStreams: "3.9"}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [in])
          --> KSTREAM-PROCESSOR-0000000001
        Processor: KSTREAM-PROCESSOR-0000000001 (stores: [STORES])
          --> none
          <-- KSTREAM-SOURCE-0000000000
"""


@pytest.mark.parametrize(("stores", "expected"), [("", ExitCode.DONE), ("first, second", ExitCode.REFUSED)])
def test_one_text_does_not_show_what_two_versions_build(
    stores: str, expected: ExitCode, tmp_path: Path
) -> None:
    details = "  stores: {first: {kind: keyValue}, second: {kind: keyValue}}\n" if stores else ""
    file = write(tmp_path / "app.yaml", _DESCRIBED.replace("STORES", stores) + details)

    done = headwater(file, "--to", "4.3", "--before", file, command="upgrade")

    assert done.exit_code == expected, done.stdout
    assert ("does not show whether these differences" in done.stdout) is bool(stores)
