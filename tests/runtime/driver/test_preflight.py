"""Checks before the start: locked checkpoints, folders, output topics."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater.spec.locations import MAX_BYTES
from headwater_spark.driver.preflight import (
    check_runnable,
    check_state_folder,
    checkpoint_lock,
    warn_missing_outputs,
    warn_standby_copies,
)

_DOCUMENT = """
application:
  id: shop
  config: {errors.dead.letter.queue.topic.name: dead}
topology:
  - stream: {topic: orders, serdes: {key: string, value: json}}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
  - toStream:
  - to: {topic: totals}
"""


@attrs.frozen
class _Cluster:
    existing: tuple[str, ...] | None

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        if self.existing is None:
            raise ProblemsError([Problem(code=ProblemCode.NOT_AUTHORIZED, summary="not allowed")])
        return {name: "id" for name in names if name in self.existing}


def _warned(*existing: str, is_authorized: bool = True) -> list[str]:
    runnable = check_runnable(load_text(_DOCUMENT, "shop.yaml").documents[0])
    cluster = _Cluster(existing if is_authorized else None)
    with capture_logs() as lines:
        warn_missing_outputs(runnable.nodes, runnable.document.application, cluster)
    return [line["topic"] for line in lines if line["log_level"] == "warning"]


def test_warns_of_missing_output_topics_but_not_of_internal_ones() -> None:
    assert _warned() == ["dead", "totals"]
    assert _warned("totals") == ["dead"]
    assert _warned("totals", "dead") == []


def test_warns_of_nothing_without_permission_to_describe_topics() -> None:
    assert _warned(is_authorized=False) == []


@pytest.mark.parametrize(("copies", "warnings"), [("0", []), ("1", ["num.standby.replicas=1"])])
def test_warns_of_standby_copies_that_are_not_kept(copies: str, warnings: list[str]) -> None:
    application = load_text(_DOCUMENT, "shop.yaml").documents[0].application
    config = {"num.standby.replicas": copies}
    with capture_logs() as lines:
        warn_standby_copies(attrs.evolve(application, config=config))
        warn_standby_copies(attrs.evolve(application, config={}))
    assert [line["config"] for line in lines] == warnings


def test_checkpoint_has_one_client_at_a_time(tmp_path: Path) -> None:
    with checkpoint_lock(str(tmp_path), "shop"):
        with checkpoint_lock(str(tmp_path), "another"):
            pass
        with (
            pytest.raises(ProblemsError, match="is already running") as refused,
            checkpoint_lock(str(tmp_path), "shop"),
        ):
            pass
        assert refused.value.problems[0].found == f"process {os.getpid()}"
    with checkpoint_lock(str(tmp_path), "shop"), checkpoint_lock("s3a://bucket/checkpoints", "shop"):
        pass


def test_unusable_folders_are_reported_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProblemsError) as refused, checkpoint_lock(str(tmp_path / "file"), "shop"):
        pass
    assert "--checkpoint" in refused.value.problems[0].fix
    with pytest.raises(ProblemsError) as refused:
        check_state_folder(tmp_path / "file", "shop")
    assert "--state-dir" in refused.value.problems[0].fix
    check_state_folder(tmp_path / "a" / "b", "shop")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def _refused_schema(folder: Path, name: str) -> Problem:
    text = _DOCUMENT.replace("value: json", f"value: 'avro:{name}'")
    with pytest.raises(ProblemsError) as refused:
        check_runnable(load_text(text, str(folder / "shop.yaml")).documents[0], folder)
    return refused.value.problems[0]


def test_schema_files_are_in_the_folder_of_the_document(tmp_path: Path) -> None:
    """A document must not be able to read, or to show in an error, any file of the machine."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (tmp_path / "secret.avsc").write_text('"string"')
    (folder / "link.avsc").symlink_to(tmp_path / "secret.avsc")
    for name in (str(tmp_path / "secret.avsc"), "../secret.avsc", "link.avsc", "/dev/zero"):
        assert "is outside of the document's folder" in _refused_schema(folder, name).summary
    (folder / "large.avsc").write_text("[" + " " * MAX_BYTES)
    assert "too large" in _refused_schema(folder, "large.avsc").summary
    os.mkfifo(folder / "pipe.avsc")
    assert "is not a regular file" in _refused_schema(folder, "pipe.avsc").summary
    assert "No such file" in _refused_schema(folder, "missing.avsc").summary
    (folder / "order.avsc").write_text('"string"')
    text = _DOCUMENT.replace("key: value.customer", "key: value").replace("json", "avro:order.avsc")
    assert check_runnable(load_text(text, "shop.yaml").documents[0], folder).schemas
