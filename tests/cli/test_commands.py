"""validate, compile, describe and import, offline."""

import json
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from tests.cli.conftest import EXAMPLES, Headwater

_COUNTS = ("orders=6", "customers=6", "payments=6", "stock=3", "open-orders=6")
_PARTITIONS = [word for count in _COUNTS for word in ("--partitions", count)]
_SHOP = [EXAMPLES / f"{name}.yaml" for name in ("fulfilment", "order-enrichment", "revenue-by-category")]
_TESTS = Path(__file__).parents[1]
_CASES = _TESTS / "oracle" / "cases"
_GOLDEN = _TESTS / "report" / "golden"
_DOCS = _TESTS.parent / "docs"


def test_validate_prints_valid_applications(headwater: Headwater) -> None:
    done = headwater("validate", *_SHOP)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert done.stdout == "3 applications are valid: fulfilment, order-enrichment, revenue-by-category\n"


def test_validate_names_a_few_of_many_applications(headwater: Headwater, tmp_path: Path) -> None:
    text = "application: {id: app-ID}\ntopology: [{stream: {topic: orders}}, {to: {topic: out-ID}}]\n"
    for number in range(1_021):
        (tmp_path / f"{number:04}.yaml").write_text(text.replace("ID", str(number)), encoding="utf-8")
    done = headwater("validate", tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert done.stdout.startswith("1,021 applications are valid: app-0, app-1, ")
    assert done.stdout.endswith(", app-19 and 1,001 more\n")


def test_typo_has_a_location_and_a_suggestion(headwater: Headwater, tmp_path: Path) -> None:
    text = (
        (EXAMPLES / "order-enrichment.yaml").read_text(encoding="utf-8").replace("selectKey:", "selectKye:")
    )
    (tmp_path / "typo.yaml").write_text(text, encoding="utf-8")
    line = 1 + text[: text.index("selectKye")].count("\n")
    done = headwater("validate", "typo.yaml")
    assert done.returncode == ExitCode.PROBLEMS
    assert done.stdout == ""
    assert f"typo.yaml:{line}:" in done.stderr
    assert "selectKey" in done.stderr


def test_validate_as_json(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "application: {id: x}\ntopology: [{strem: {topic: a}}]\n", encoding="utf-8"
    )
    done = headwater("validate", "bad.yaml", "--format", "json")
    assert done.returncode == ExitCode.PROBLEMS
    (problem, *_) = json.loads(done.stdout)["problems"]
    assert problem["code"] == "SchemaViolation"
    assert problem["location"]["line"] == 2


def test_validate_warns_about_incomplete_acls(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "routing.yaml").write_text(
        "application: {id: routing}\nacls: {principals: [User:routing]}\n"
        "topology:\n  - stream: {topic: orders}\n  - to: {extractor: region}\n",
        encoding="utf-8",
    )
    done = headwater("validate", "routing.yaml")
    assert done.returncode == ExitCode.DONE
    assert "warning[AclsIncomplete]" in done.stderr


def test_validate_needs_no_counts(headwater: Headwater) -> None:
    done = headwater("validate", EXAMPLES)
    assert "MissingSourceTopic" not in done.stderr
    assert done.returncode == ExitCode.DONE


@pytest.mark.parametrize("form", ["text", "json", "dot", "mermaid", "svg"])
def test_compile_in_every_format(headwater: Headwater, tmp_path: Path, form: str) -> None:
    shown = headwater("compile", *_SHOP, *_PARTITIONS, "--format", form)
    assert (shown.returncode, shown.stderr) == (ExitCode.DONE, "")
    golden = {"text": "txt", "mermaid": "mmd"}.get(form, form)
    folder = _DOCS if form == "svg" else _GOLDEN
    assert shown.stdout == (folder / f"examples.{golden}").read_text(encoding="utf-8")
    written = headwater("compile", *_SHOP, *_PARTITIONS, "--format", form, "--output", "out")
    assert (written.returncode, written.stdout) == (ExitCode.DONE, "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == shown.stdout


def test_compile_requires_counts_of_source_topics(headwater: Headwater) -> None:
    done = headwater("compile", EXAMPLES / "revenue-by-category.yaml", "--format", "json")
    assert done.returncode == ExitCode.PROBLEMS
    assert "`--partitions payments=N`" in done.stderr
    (application,) = json.loads(done.stdout)["applications"]
    assert application["problems"][0]["topic"] == "payments"


def test_compile_shows_no_topics_of_a_topology_that_kafka_streams_refuses(
    headwater: Headwater, tmp_path: Path
) -> None:
    (tmp_path / "twice.yaml").write_text(
        "application: {id: twice}\ntopology:\n  - stream: {topic: a, as: a}\n  - groupByKey:\n"
        "  - count: {materialized: counts}\n  - groupByKey: {from: a}\n  - count: {materialized: counts}\n",
        encoding="utf-8",
    )
    done = headwater("compile", "twice.yaml", _SHOP[2], "--partitions", "a=4", "--partitions", "payments=4")
    assert done.returncode == ExitCode.PROBLEMS
    assert "error[InvalidTopology]" in done.stderr
    assert done.stdout.startswith(
        "twice  not valid: 1 error, so no topics are shown\n\nrevenue-by-category  "
    )
    assert "twice-counts-changelog" not in done.stdout


def test_compile_needs_no_count_of_a_global_topic(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "global.yaml").write_text(
        "application: {id: rates}\ntopology:\n  - globalTable: {topic: currencies, as: rates}\n"
        "  - stream: orders\n  - join: {with: rates, key: value.currency}\n  - groupByKey:\n  - count:\n",
        encoding="utf-8",
    )
    done = headwater("compile", "global.yaml", "--partitions", "orders=6")
    assert (done.returncode, "error" in done.stderr) == (ExitCode.DONE, False)
    assert "6 partitions" in done.stdout


def test_compile_notes_unused_counts(headwater: Headwater) -> None:
    done = headwater("compile", _SHOP[2], "--partitions", "payments=4", "--partitions", "paymnets=4")
    assert done.returncode == ExitCode.DONE
    assert "--partitions paymnets=4 has no effect" in done.stderr


def test_compile_notes_no_counts_of_documents_with_errors(headwater: Headwater, tmp_path: Path) -> None:
    text = "application: {id: a, config: {topic.retention.ms: null}}\ntopology:\n  - stream: orders\n"
    (tmp_path / "wrong.yaml").write_text(text, encoding="utf-8")
    done = headwater("compile", "wrong.yaml", "--partitions", "orders=6")
    assert (done.returncode, "has no effect" in done.stderr) == (ExitCode.PROBLEMS, False)


def test_compile_reports_invalid_documents_together_with_valid_ones(
    headwater: Headwater, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text("application: [\n", encoding="utf-8")
    done = headwater("compile", "bad.yaml", _SHOP[2], "--partitions", "payments=4", "--format", "json")
    assert done.returncode == ExitCode.PROBLEMS
    document = json.loads(done.stdout)
    assert [each["applicationId"] for each in document["applications"]] == ["revenue-by-category"]
    assert document["problems"][0]["code"] == "YamlSyntax"


def test_describe_prints_the_text_of_kafka_streams_byte_for_byte(headwater: Headwater) -> None:
    case = _CASES / "stream_table_inner"
    done = headwater("describe", case / "document.yaml")
    assert done.returncode == ExitCode.DONE
    assert done.stdout_bytes == (case / "describe.txt").read_bytes()


def test_describe_requires_one_application(headwater: Headwater, tmp_path: Path) -> None:
    document = "application: {{id: {0}}}\ntopology:\n  - stream: {{topic: t}}\n  - to: {{topic: {0}-out}}\n"
    (tmp_path / "two.yaml").write_text(
        document.format("one") + "---\n" + document.format("two"), encoding="utf-8"
    )
    several = headwater("describe", "two.yaml")
    assert several.returncode == ExitCode.USAGE
    assert "one, two" in several.stderr
    chosen = headwater("describe", "two.yaml", "--application-id", "two")
    assert "two-out" in chosen.stdout
    assert headwater("describe", "two.yaml", "--application-id", "three").returncode == ExitCode.USAGE


def test_describe_refuses_what_kafka_streams_refuses(headwater: Headwater, tmp_path: Path) -> None:
    text = "application: {id: a}\ntopology:\n  - addSink: {name: out, topic: t, parents: [missing]}\n"
    (tmp_path / "orphan.yaml").write_text(text, encoding="utf-8")
    done = headwater("describe", "orphan.yaml")
    assert (done.returncode, done.stdout) == (ExitCode.PROBLEMS, "")
    assert "InvalidTopology" in done.stderr
