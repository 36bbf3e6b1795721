"""`headwater import`: documents from descriptions."""

import json
import re
from pathlib import Path

import pytest
import yaml

from headwater.cli.console import ExitCode
from headwater.cli.import_details import with_cluster_details
from headwater.cli.imported_documents import DescribedApplication, group_sentence
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.topology import Protocol, StoreDetail
from headwater.model.versions import DEFAULT_VERSION
from headwater.spec import load_text
from tests.cli.conftest import Headwater

_CASES = Path(__file__).parents[1] / "oracle" / "cases"
_WINDOWED = """\
2026-11-21 INFO Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [counts])
      --> none
      <-- KSTREAM-SOURCE-0000000000

2026-11-21 INFO started
"""
_NAMED = """\
Topology: {0}:
   Sub-topology: 0
    Source: {0}-source (topics: [{0}])
      --> {0}-sink
    Sink: {0}-sink (topic: copy-of-{0})
      <-- {0}-source

"""

_UNNAMED = _NAMED.replace("Topology: {0}:", "Topologies:")


def imported(headwater: Headwater, *arguments: object) -> tuple[int, str]:
    done = headwater("import", "--application-id", "app", *arguments, "-o", "app.yaml")
    return done.returncode, done.stderr


@pytest.mark.parametrize("case", ["stream_table_inner", "everything_opt_none", "pattern_source"])
def test_imported_document_has_the_same_description(headwater: Headwater, case: str) -> None:
    text = _CASES / case / "describe.txt"
    if not text.exists():
        pytest.fail(f"no such case: {case}")
    imported(headwater, "--describe", text)
    assert headwater("describe", "app.yaml").stdout_bytes == text.read_bytes()


def test_missing_details_are_requested_by_name(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(_WINDOWED, encoding="utf-8")
    code, output = imported(headwater, "--describe", "log.txt")
    assert code == ExitCode.PROBLEMS
    assert "store counts" in output
    assert "--store" in output
    assert "# Missing: " in (tmp_path / "app.yaml").read_text(encoding="utf-8")


def test_options_supply_missing_details(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(_WINDOWED, encoding="utf-8")
    answer = "counts=window,retention=2h,logging=true,overrides.segment.bytes=1048576"
    options = ("--config", "num.stream.threads=2", "--kafka-streams", "4.3")
    code, output = imported(headwater, "--describe", "log.txt", "--store", answer, *options)
    assert (code, output) == (ExitCode.DONE, "")
    (document,) = load_text((tmp_path / "app.yaml").read_text(encoding="utf-8"), "app.yaml").documents
    assert document.application.config == {"num.stream.threads": "2"}
    assert document.described is not None
    detail = document.described.stores["counts"]
    assert (detail.kind, detail.retention_ms) == ("window", 7_200_000)
    assert detail.overrides == {"segment.bytes": "1048576"}


def test_invalid_detail_is_refused(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(_WINDOWED, encoding="utf-8")
    code, output = imported(headwater, "--describe", "log.txt", "--store", "counts=widnow,retention=2h")
    assert code == ExitCode.PROBLEMS
    assert "widnow" in output
    assert not (tmp_path / "app.yaml").exists()


def test_description_from_standard_input(headwater: Headwater) -> None:
    arguments = ("--application-id", "app", "--store", "counts=keyValue", "--kafka-streams", "4.3")
    done = headwater("import", "--describe", "-", *arguments, "--assume-defaults", input=_WINDOWED)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert "unknown" not in done.stdout
    assert load_text(done.stdout, "app.yaml").documents


def test_what_the_text_does_not_show_is_unknown_in_the_document_and_the_output(
    headwater: Headwater, tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text(_WINDOWED, encoding="utf-8")
    code, output = imported(headwater, "--describe", "log.txt", "--store", "counts=keyValue")
    assert code == ExitCode.DONE
    assert "warning[MissingDetail] Not known of stores: logging, overrides of counts." in output
    assert "its version of Kafka Streams (4.4 is assumed)," in output
    document = yaml.safe_load((tmp_path / "app.yaml").read_text(encoding="utf-8"))
    assert document["describe"]["unknown"] == {
        "stores": {"counts": ["logging", "overrides"]},
        "application": ["kafkaStreams", "config"],
    }
    validated = headwater("validate", "app.yaml")
    assert validated.returncode == ExitCode.DONE
    assert "Not known of stores" in validated.stderr


def test_a_stateless_text_has_one_unknown_at_most(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(_UNNAMED.format("orders"), encoding="utf-8")
    code, output = imported(headwater, "--describe", "text.txt")
    assert code == ExitCode.DONE
    assert output.count("warning[") == 1
    assert "its version of Kafka Streams (4.4 is assumed)" in output
    code, output = imported(headwater, "--describe", "text.txt", "--kafka-streams", "4.3")
    assert (code, output) == (ExitCode.DONE, "")


def test_only_the_retention_is_asked_for_where_the_kind_is_known(
    headwater: Headwater, tmp_path: Path
) -> None:
    text = (_CASES / "stream_stream_inner" / "describe.txt").read_text(encoding="utf-8")
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    code, output = imported(headwater, "--describe", "text.txt", "--kafka-streams", "4.3")
    assert code == ExitCode.PROBLEMS
    assert "KIND" not in output
    stores = re.findall(r"shows? the retention of store\s+([\w-]+)", output.replace("\n  ", " "))
    assert stores
    answers = [f"--store={store}=retention=1h" for store in stores]
    code, _ = imported(headwater, "--describe", "text.txt", "--kafka-streams", "4.3", *answers)
    assert code == ExitCode.DONE


def test_named_topologies_are_imported_one_by_one(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "named.txt").write_text(_NAMED.format("left") + _NAMED.format("right"), encoding="utf-8")
    code, output = imported(headwater, "--describe", "named.txt")
    assert code == ExitCode.PROBLEMS
    assert "1 (line 1): left, reads left, writes copy-of-left; 2 (line 8): right" in output
    for choice in ("right", "2"):
        code, _ = imported(headwater, "--describe", "named.txt", "--topology", choice)
        assert code == ExitCode.DONE
        assert "copy-of-right" in headwater("describe", "app.yaml").stdout
    code, output = imported(headwater, "--describe", "named.txt", "--topology", "middle")
    assert code == ExitCode.PROBLEMS
    assert "The text describes no topology middle." in output


def test_each_entrance_refuses_several_topologies_and_takes_a_choice(
    headwater: Headwater, tmp_path: Path
) -> None:
    """Spring's endpoint returns a JSON list with the texts of all applications of the process."""
    texts = [_UNNAMED.format("words"), _UNNAMED.format("bids"), _UNNAMED.format("words")]
    (tmp_path / "list.json").write_text(json.dumps(texts), encoding="utf-8")
    document = tmp_path / "document.yaml"
    for choice, expected in ((None, None), ("1", "words"), ("2", "bids")):
        option = () if choice is None else ("--topology", choice)
        from_file = imported(headwater, "--describe", "list.json", *option)
        arguments = ("import", "--application-id", "app", "--describe", "-", *option)
        from_input = headwater(*arguments, input=json.dumps(texts))
        document.write_text(
            "version: 1\napplication: {id: app}\ndescribe:\n  file: list.json\n"
            + (f"  topology: {choice}\n" if choice else ""),
            encoding="utf-8",
        )
        from_document = headwater("describe", str(document))
        if expected is None:
            for output in (from_file[1], from_input.stderr, from_document.stderr):
                assert "The text describes 2 different topologies." in output
                assert "reads words, writes copy-of-words" in output
            assert {from_file[0], from_input.returncode, from_document.returncode} == {ExitCode.PROBLEMS}
        else:
            assert headwater("describe", "app.yaml").stdout == from_document.stdout
            assert f"copy-of-{expected}" in from_document.stdout
            assert f"copy-of-{expected}" in from_input.stdout


def test_a_text_without_a_description(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("nothing here\n", encoding="utf-8")
    code, output = imported(headwater, "--describe", "log.txt")
    assert code == ExitCode.PROBLEMS
    assert "UnreadableDescribe" in output


def test_warning_suggests_no_option(headwater: Headwater, tmp_path: Path) -> None:
    text = (
        "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [a])\n      --> t\n"
        "    Sink: t (topic: x-repartition)\n      <-- s\n\n  Sub-topology: 1\n"
        "    Source: u (topics: [x-repartition])\n      --> none\n\n"
    )
    (tmp_path / "text").write_text(text, encoding="utf-8")
    _, output = imported(headwater, "--describe", "text")
    assert "warning[MissingDetail] x-repartition" in output
    assert "--store" not in output


def test_document_has_state_and_protocol_of_the_group() -> None:
    groups = {
        "app": LiveGroup("app", "Stable", 2),
        "new": LiveGroup("new", "Unknown", None),
    }
    snapshot = ClusterSnapshot("c1", 3, groups=groups)
    assert group_sentence("app", snapshot) == "Group app on cluster c1 is in state Stable with 2 members."
    assert "uses the streams protocol" in group_sentence("new", snapshot)
    written = DescribedApplication(
        application_id="new",
        text="Topologies:\n   Sub-topology: 0\n    Source: s (topics: [a])\n      --> none\n\n",
        uses_streams_protocol=True,
        observed=group_sentence("new", snapshot),
    ).document()
    (document,) = load_text(written, "new.yaml").documents
    assert document.application.protocol is Protocol.STREAMS
    assert written.endswith("# Group new on cluster c1 uses the streams protocol.\n")


def test_configs_that_only_the_brokers_know_are_allowed_in_the_document() -> None:
    known = {"vendor.tier": "cold", "segment.bytes": "1000", "segment.ms": "5"}
    details = StoreDetail(overrides=known)
    text = (
        "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [a])\n      --> p\n"
        "    Processor: p (stores: [counts])\n      --> none\n      <-- s\n\n"
    )
    plain = DescribedApplication(application_id="app", text=text)
    live = {
        "a": LiveTopic("a", "id-a", 1, 1),
        "app-counts-changelog": LiveTopic(
            "app-counts-changelog", "id", 1, 1, {"cleanup.policy": "compact", **known}
        ),
    }
    snapshot = ClusterSnapshot("c1", 1, topics=live, described=frozenset(live))
    (document,) = load_text(plain.document(), "app.yaml").documents
    found = with_cluster_details(plain, document, snapshot)
    assert found.broker_configs == ["segment.bytes", "vendor.tier"]
    loaded = load_text(found.document(), "app.yaml")
    assert loaded.problems == ()
    assert loaded.documents[0].described is not None
    assert loaded.documents[0].described.stores["counts"].overrides == details.overrides


def _wide_processor(stores: int) -> str:
    names = ", ".join(f"store-{number}" for number in range(stores))
    return (
        "Topologies:\n   Sub-topology: 0\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [in])\n      --> KSTREAM-PROCESSOR-0000000001\n"
        f"    Processor: KSTREAM-PROCESSOR-0000000001 (stores: [{names}])\n      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
    )


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_processor_with_thousands_of_stores_takes_linear_time(headwater: Headwater, tmp_path: Path) -> None:
    """Each store was compared with all others: 20,000 took minutes."""
    text = tmp_path / "wide.txt"
    text.write_text(_wide_processor(20_000))
    code, errors = imported(headwater, "--describe", text)
    assert code == ExitCode.PROBLEMS
    assert errors.endswith("20,000 errors, 2 warnings; 19,502 of them are not shown\n")


def _log(version: str) -> str:
    return f"2026-11-21 INFO Kafka Streams version: {version}\n{_NAMED.format('orders')}"


@pytest.mark.parametrize(
    ("version", "written"), [("3.9.2", "3.9"), ("4.1.0", "4.1.0"), ("4.2.9", "4.2"), ("4.3.1", "4.3")]
)
def test_the_version_of_the_log_is_written(
    headwater: Headwater, tmp_path: Path, version: str, written: str
) -> None:
    (tmp_path / "log.txt").write_text(_log(version), encoding="utf-8")

    code, _ = imported(headwater, "--describe", "log.txt")

    assert code == ExitCode.DONE
    document = yaml.safe_load((tmp_path / "app.yaml").read_text(encoding="utf-8"))
    assert document["application"]["kafkaStreams"] == written


def test_the_version_of_the_command_line_counts_and_another_one_in_the_log_is_a_warning(
    headwater: Headwater, tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text(_log("3.9.1"), encoding="utf-8")

    code, output = imported(headwater, "--describe", "log.txt", "--kafka-streams", "4.0")

    assert code == ExitCode.DONE
    assert "Warning: the log is of Kafka Streams 3.9.1, but --kafka-streams is 4.0.2." in output
    assert "  kafkaStreams: '4.0'\n" in (tmp_path / "app.yaml").read_text(encoding="utf-8")
    _, output = imported(headwater, "--describe", "log.txt", "--kafka-streams", "3.9")
    assert "Warning" not in output


@pytest.mark.parametrize(
    ("version", "written", "warning"),
    [
        ("2.8.1", "2.8.1", "Kafka Streams 2.8.1 was compared in part"),
        ("3.6.2", "3.6", "Kafka Streams 3.6.2 was compared in part"),
        ("4.9.0", "4.9.0", "Kafka Streams 4.9.0 is later than the newest release"),
    ],
)
def test_an_older_or_later_version_of_the_log_is_imported_with_a_warning(
    headwater: Headwater, tmp_path: Path, version: str, written: str, warning: str
) -> None:
    (tmp_path / "log.txt").write_text(_log(version), encoding="utf-8")

    code, output = imported(headwater, "--describe", "log.txt")

    assert code == ExitCode.DONE
    assert f"warning[UnsupportedVersion] {warning}" in output
    assert f"  kafkaStreams: '{written}'" in (tmp_path / "app.yaml").read_text(encoding="utf-8").replace(
        f" {version}\n", f" '{version}'\n"
    )
    upgraded = headwater("upgrade", "app.yaml", "--to", "4.3")
    assert upgraded.returncode in {ExitCode.DONE, ExitCode.DRIFT, ExitCode.REFUSED}
    if version < "4":
        assert "KAFKA-13769" in upgraded.stdout or version > "3.4"


def test_a_log_of_an_unsupported_version_is_a_problem(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(_log("2.4.1"), encoding="utf-8")

    code, output = imported(headwater, "--describe", "log.txt")

    assert code == ExitCode.PROBLEMS
    assert "error[UnsupportedVersion] Kafka Streams 2.4.1 is not supported." in output
    assert "Upgrade the application to 2.5 or later first." in output


def test_a_text_without_a_version_gets_the_default_explicitly(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(_NAMED.format("orders"), encoding="utf-8")

    imported(headwater, "--describe", "text.txt")

    text = (tmp_path / "app.yaml").read_text(encoding="utf-8")
    assert f"  kafkaStreams: '{DEFAULT_VERSION.release}'\n" in text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_texts_that_windows_has_written_are_read(headwater: Headwater, tmp_path: Path, encoding: str) -> None:
    text = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [a])\n      --> none\n\n"
    (tmp_path / "text.txt").write_text(text, encoding=encoding, newline="\r\n")
    done = headwater("import", "--describe", "text.txt", "--application-id", "app")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "Source: s (topics: [a])" in done.stdout


def test_a_text_that_is_cut_off_after_its_first_line_is_named(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("12:00 INFO App - Topologies:\n", encoding="utf-8")
    done = headwater("import", "--describe", "text.txt", "--application-id", "app")
    assert (done.returncode, done.stdout) == (ExitCode.PROBLEMS, "")
    assert "error[UnreadableDescribe] The description has no sub-topology." in done.stderr
    assert "copy the complete text" in " ".join(done.stderr.split())
