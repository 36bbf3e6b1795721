"""`headwater change`: its inputs, formats and exit codes, and bad input."""

import json
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.compiler.renumbering import origins
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.edits import Verdict
from headwater.pulumi.stack_state import record_outputs
from headwater.report.edits.markdown import edit_markdown
from headwater.report.edits.page import edit_page
from headwater.report.edits.text import edit_text
from headwater.report.edits.to_json import edit_json, read_edit
from headwater.report.plan_comment import plan_comment, read_preview
from headwater.report.plan_comment.comment import LIMIT
from tests.edits.sides import COUNT, GENERATED, edit, side

SCHEMA = json.loads(files("topology_schemas").joinpath("change.v1.schema.json").read_text("utf-8"))
GOLDEN = Path(__file__).parent / "golden"
FILTERED = GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:")
NAMED = GENERATED.replace("- count:", "- count: {materialized: counts}").replace(
    "- reduce:", "- reduce: {materialized: totals}"
)


def headwater(*arguments: str, command: str = "change") -> Result:
    return CliRunner().invoke(main, (command, *arguments), prog_name="headwater")


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def read(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {each["topic"]: each["verdict"] for each in found["applications"][0]["topics"]}


@pytest.mark.parametrize("form", ["txt", "json", "md", "html"])
def test_each_format(form: str, golden: Callable[[Path, str], None]) -> None:
    after = FILTERED.replace("- reduce:", "- windowedBy: {session: {gap: 1m}}\n  - reduce: {name: sum}")
    found = edit(GENERATED, after)
    texts = {
        "txt": lambda: f"{edit_text(found)}\n",
        "json": lambda: json.dumps(edit_json(found), indent=2, ensure_ascii=False) + "\n",
        "md": lambda: edit_markdown(found),
        "html": lambda: edit_page(found),
    }
    golden(GOLDEN / f"edited.{form}", texts[form]())


def test_json_is_valid_and_is_read_back() -> None:
    found = edit(GENERATED, FILTERED)
    text = json.dumps(edit_json(found))

    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert read_edit(text) == found
    assert SCHEMA["$defs"]["topic"]["properties"]["verdict"]["enum"] == [each.value for each in Verdict]


def test_the_guide_explains_each_verdict() -> None:
    page = (Path(__file__).parents[2] / "docs/changing-topologies.md").read_text(encoding="utf-8")

    assert [verdict for verdict in Verdict if f"| `{verdict}` |" not in page] == []


def test_markdown_has_no_active_content() -> None:
    hostile = FILTERED.replace("- reduce:", '- reduce: {materialized: "a.b_c"}').replace("id: app", "id: app")
    shown = MarkdownIt("commonmark").enable("table").render(edit_markdown(edit(GENERATED, hostile)))

    assert "<script" not in shown
    assert "<table>" in shown


def test_the_page_has_all_topics_and_no_active_content() -> None:
    hostile = attrs.evolve(
        edit(GENERATED, FILTERED), problems=(), cluster_id="<script>alert(1)</script>", added=("<b>x</b>",)
    )
    shown = edit_page(hostile)

    assert "<script" not in shown
    assert "<b>x</b>" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert [topic.topic for topic in hostile.topics if topic.topic not in shown] == []


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


def _git(folder: Path, *arguments: str) -> None:
    of = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *of, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_revision_of_git_is_compared_with_the_working_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = "application: {id: app, kafkaStreams: '4.3'}\ndescribe: {file: app.txt}\n"
    write(tmp_path / "before.yaml", GENERATED)
    for name, text in (("before", GENERATED), ("after", FILTERED)):
        shown = headwater(write(tmp_path / f"{name}.yaml", text), command="describe")
        write(tmp_path / f"{name}.txt", shown.stdout)
    repository = tmp_path / "repository"
    write(repository / "topologies/app.yaml", document)
    write(repository / "topologies/app.txt", (tmp_path / "before.txt").read_text())
    _git(repository, "init", "--quiet")
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "--message", "Add")
    write(repository / "topologies/app.txt", (tmp_path / "after.txt").read_text())
    monkeypatch.chdir(repository)

    found = read(headwater("topologies", "--git", "HEAD", "--format", "json"))
    unknown = headwater("topologies", "--git", "no-such-branch")
    option = headwater("topologies", "--git=--upload-pack=touch hacked")

    assert set(verdicts(found).values()) == {"renamed"}
    assert unknown.exit_code == ExitCode.PROBLEMS
    assert "Git finds no revision no-such-branch" in unknown.stderr
    assert option.exit_code == ExitCode.PROBLEMS
    assert not (repository / "hacked").exists()


def test_a_file_that_the_revision_does_not_have_is_a_new_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "other.txt", "")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "Add")
    write(tmp_path / "app.yaml", GENERATED)
    monkeypatch.chdir(tmp_path)

    assert read(headwater("app.yaml", "--git", "HEAD", "--format", "json"))["addedApplications"] == ["app"]


@pytest.mark.parametrize("pattern", ["*/app.yaml", "topolog[a-z]es", "topologies/a??.yaml"])
def test_a_pattern_finds_the_files_of_the_revision(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "topologies" / "app.yaml", GENERATED)
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "Add")
    write(Path(file), FILTERED)
    monkeypatch.chdir(tmp_path)

    found = read(headwater(pattern, "--git", "HEAD", "--format", "json"))

    assert found["addedApplications"] == []
    assert set(verdicts(found).values()) == {"renamed"}


def test_links_of_a_revision_that_lead_outside_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository/topologies"
    write(folder / "app.yaml", GENERATED)
    (folder / "outside.yaml").symlink_to("/etc/passwd")
    (folder / "loop.txt").symlink_to("loop.txt")
    (folder / "to-loop.txt").symlink_to("loop.txt")
    # Without the link `up`, which is written later, this path is in the folder.
    levels = ("a",) * 16
    (folder / "0.yaml").symlink_to("/".join((*levels, "up", *(len(levels) + 1) * ("..",), "etc/passwd")))
    folder.joinpath(*levels).mkdir(parents=True)
    folder.joinpath(*levels, "up").symlink_to("/".join(len(levels) * ("..",)))
    _git(folder, "init", "--quiet", "..")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "Add")
    for name in ("0.yaml", "outside.yaml"):
        (folder / name).unlink()
    monkeypatch.chdir(folder)

    found = read(headwater(".", "--git", "HEAD", "--format", "json"))

    assert set(verdicts(found).values()) == {"kept"}


def test_files_that_releases_leave_out_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "topologies" / "app.yaml", GENERATED)
    write(tmp_path / ".gitattributes", "topologies export-ignore\n")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "Add")
    write(Path(file), FILTERED)
    monkeypatch.chdir(tmp_path)

    found = read(headwater("topologies", "--git", "HEAD", "--format", "json"))

    assert found["addedApplications"] == []
    assert set(verdicts(found).values()) == {"renamed"}


@pytest.mark.parametrize("argument", ["shared/topologies", "shared", "."])
def test_a_submodule_is_read_at_the_commit_of_the_revision(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, repository = tmp_path / "library", tmp_path / "repository"
    write(library / "topologies/app.yaml", GENERATED)
    for folder in (library, repository):
        folder.mkdir(exist_ok=True)
        _git(folder, "init", "--quiet")
    _git(library, "add", ".")
    _git(library, "commit", "--quiet", "--message", "Add")
    _git(
        repository, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(library), "shared"
    )
    _git(repository, "commit", "--quiet", "--message", "Add the submodule")
    write(repository / "shared/topologies/app.yaml", FILTERED)
    _git(repository / "shared", "commit", "--quiet", "--all", "--message", "Filter")
    monkeypatch.chdir(repository)

    found = read(headwater(argument, "--git", "HEAD", "--format", "json"))

    assert found["addedApplications"] == []
    assert set(verdicts(found).values()) == {"renamed"}


def test_outside_of_a_repository_git_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "app.yaml", GENERATED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    done = headwater("app.yaml", "--git", "HEAD")

    assert done.exit_code == ExitCode.PROBLEMS
    assert "not a git repository" in done.stderr
    assert "shallow" not in done.stderr


def _recorded_state(folder: Path, text: str) -> str:
    """Write the state of a stack that has set up the only application of `text`, and return its file."""
    (before,) = side(text).of.values()
    record = SetupRecord(
        "app",
        {name: RecordedTopic(name, f"id-{name}", topic.partitions) for name, topic in before.topics.items()},
        generated=frozenset(before.topics),
        origins=origins(before.compiled),
        kafka_streams="4.3.1",
    )
    urn = "urn:pulumi:dev::project::headwater:kafka:InternalTopics::app"
    resource = {"urn": urn, "type": "headwater:kafka:InternalTopics", "outputs": record_outputs(record)}
    return write(folder / "state.json", json.dumps({"deployment": {"resources": [resource]}}))


def test_documents_are_compared_with_what_a_stack_recorded(tmp_path: Path) -> None:
    state = _recorded_state(tmp_path, GENERATED)

    def changed(text: str, *arguments: str) -> dict[str, Any]:
        file = write(tmp_path / "app.yaml", text)
        return read(headwater(file, "--stack-state", state, "--format", "json", *arguments))

    same = changed(GENERATED, "--partitions", "in=4")
    assert set(verdicts(same).values()) == {"kept"}
    assert not same["hasChanges"]
    assert set(verdicts(changed(GENERATED)).values()) == {"kept"}  # counts are not known, so not compared
    assert set(verdicts(changed(GENERATED, "--partitions", "in=8")).values()) == {"moved"}
    renamed = changed(FILTERED, "--partitions", "in=4")
    assert set(verdicts(renamed).values()) == {"renamed"}
    assert "--git" in renamed["applications"][0]["topics"][0]["first"]
    named = changed(NAMED, "--partitions", "in=4")
    assert sorted(verdicts(named).values()) == ["added", "added", "added", "orphaned", "orphaned", "orphaned"]
    (in_flight,) = (
        each
        for each in named["applications"][0]["topics"]
        if each["verdict"] == "orphaned" and each["topic"].endswith("-repartition")
    )
    assert "wait until the application has processed all records" in in_flight["first"]
    assert changed(NAMED.replace("id: app", "id: new"))["addedApplications"] == ["new"]


def test_a_stack_finds_an_application_under_its_former_id(tmp_path: Path) -> None:
    state = _recorded_state(tmp_path, NAMED)
    file = write(tmp_path / "app.yaml", NAMED.replace("id: app", "id: new, renamedFrom: app"))

    found = read(headwater(file, "--stack-state", state, "--format", "json", "--partitions", "in=4"))

    assert (found["addedApplications"], found["removedApplications"]) == ([], [])
    (application,) = found["applications"]
    assert application["formerApplicationId"] == "app"
    assert application["obstacle"] == "the application id changes"
    assert set(verdicts(found).values()) == {"renamed"}
    (counts,) = (each for each in application["topics"] if each["store"] == "counts")
    assert "--topic app-counts-changelog=new-counts-changelog" in counts["first"]


def test_a_stack_shows_what_more_partitions_mean_for_a_static_partitioner(tmp_path: Path) -> None:
    static = NAMED.replace("id: app", "id: app, config: {static.partitioner.class: initial-hash}")
    state = _recorded_state(tmp_path, static)
    file = write(tmp_path / "app.yaml", static)

    found = read(headwater(file, "--stack-state", state, "--format", "json", "--partitions", "in=8"))

    topics = found["applications"][0]["topics"]
    assert {(topic["verdict"], topic["severity"]) for topic in topics} == {("moved", "warning")}
    assert all("headwater plan" in topic["first"] for topic in topics)


def test_a_stack_shows_that_a_streams_group_refuses_the_edit(tmp_path: Path) -> None:
    streams = GENERATED.replace("id: app", "id: app, protocol: streams")
    state = _recorded_state(tmp_path, streams)
    file = write(tmp_path / "app.yaml", streams.replace("- selectKey:", "- filter:\n  - selectKey:"))

    found = read(headwater(file, "--stack-state", state, "--format", "json", "--partitions", "in=4"))

    (application,) = found["applications"]
    assert application["needsNewGroup"]
    assert any("KAFKA-20170" in step for step in application["steps"])


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


_PREVIEW = json.dumps({"steps": [], "diagnostics": []})


def test_the_comment_on_a_pull_request_shows_the_edit_before_the_topics(tmp_path: Path) -> None:
    preview = write(tmp_path / "plan.json", _PREVIEW)
    before, after = (write(tmp_path / f"{n}.yaml", text) for n, text in enumerate((GENERATED, FILTERED)))
    report = tmp_path / "change.json"
    headwater(before, after, "--format", "json", "--output", str(report))

    done = headwater(preview, "--change", str(report), command="plan-comment")
    same = headwater(before, before, "--format", "json", "--output", str(report))
    unchanged = headwater(preview, "--change", str(report), command="plan-comment")

    assert done.exit_code == same.exit_code == ExitCode.DONE
    summary = "<details><summary>⚠️ Change of the topology: 2 stores lose their state in 1 application."
    assert summary in done.stdout
    assert f"`materialized: {COUNT}`" in done.stdout
    assert "Change of the topology: nothing changes for state and topics" in unchanged.stdout
    assert "<details>" not in unchanged.stdout


def test_a_large_edit_fits_into_a_comment() -> None:
    many = "\n".join(
        f"  - groupByKey: {{from: s, as: g{n}}}\n  - count: {{from: g{n}, name: c{n}}}" for n in range(400)
    )
    found = edit(f"{GENERATED}{many}\n", f"{FILTERED}{many}\n")

    text = plan_comment(read_preview(_PREVIEW), edit=found)

    assert len(text) <= LIMIT
    assert "400 stores" in text or "402 stores" in text


def test_a_file_that_is_no_report_is_a_problem(tmp_path: Path) -> None:
    preview = write(tmp_path / "plan.json", _PREVIEW)

    done = headwater(preview, "--change", preview, command="plan-comment")

    assert done.exit_code == ExitCode.PROBLEMS
    assert "is not the output of `headwater change --format json`" in done.stderr


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
