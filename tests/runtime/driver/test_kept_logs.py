"""The logs of failed tests are kept."""

import os
from pathlib import Path

from tests.runtime.spark.kept_logs import keep_logs


def _application(folder: Path, text: str) -> Path:
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "data.mdb").write_text("not kept")
    (folder / "run.log").write_text(text)
    (folder / "document.yaml").write_text("application:\n")
    return folder


def test_whole_logs_and_documents_of_a_failed_test_are_kept(tmp_path: Path) -> None:
    log = "line\n" * 10_000
    application = _application(tmp_path / "app", log)
    kept = tmp_path / "kept"
    first = keep_logs("test_series[seed 1, 50 faults]", [application, tmp_path / "none"], kept)
    assert first == kept / "test-series-seed-1-50-faults-1"
    assert (first / "app" / "run.log").read_text() == log
    assert {file.name for file in first.rglob("*") if file.is_file()} == {"run.log", "document.yaml"}
    assert keep_logs("test_series[seed 1, 50 faults]", [application], kept) != first
    assert keep_logs("without logs", [tmp_path / "none"], kept) is None


def test_the_oldest_logs_are_deleted(tmp_path: Path) -> None:
    application, kept = _application(tmp_path / "app", "line"), tmp_path / "kept"
    for number in range(25):
        folder = keep_logs(f"test_{number}", [application], kept)
        assert folder is not None
        os.utime(folder, (number, number))
    names = {folder.name for folder in kept.iterdir()}
    assert len(names) == 20
    assert {"test_24-1", "test_5-1"} <= {name.replace("test-", "test_") for name in names}
