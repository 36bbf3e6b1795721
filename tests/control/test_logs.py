"""Logs for people and for programs, without secrets."""

import io
import json
from collections.abc import Iterator
from pathlib import PurePath

import pytest
import structlog

from headwater.control import Access
from headwater.control.logs import configure_log, redacted_texts
from headwater.kafka import Connection

SECRET = "s3cr3t-of-orders"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_log_line_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log("json")
    structlog.get_logger().info("expanded", application="bestellungen-ä", topics=["a", "b"], count=3)
    [line] = _lines(capsys)
    assert "bestellungen-ä" in line
    document = json.loads(line)
    assert document.pop("timestamp").endswith("Z")
    assert document == {
        "event": "expanded",
        "level": "info",
        "application": "bestellungen-ä",
        "topics": ["a", "b"],
        "count": 3,
    }


def test_secrets_are_redacted_in_all_values(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log("json", secrets=[SECRET])
    structlog.get_logger().info(
        f"with {SECRET}",
        file=PurePath(SECRET),
        parts={"url": f"http://{SECRET}@host", "password": "of another", 1: ("one", SECRET)},
        is_set=True,
        nothing=None,
    )
    document = json.loads(_lines(capsys)[0])
    del document["timestamp"], document["level"]
    assert document == {
        "event": "with ***",
        "file": "PurePosixPath('***')",
        "parts": {"url": "http://***@host", "password": "***", "1": ["one", "***"]},
        "is_set": True,
        "nothing": None,
    }


def test_a_log_whose_reader_has_gone_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    configure_log()
    monkeypatch.setattr("sys.stderr", Closed())
    structlog.get_logger().warning("gave up")


def test_console_line_is_readable_without_colors(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log("console")
    structlog.get_logger().warning("gave up", application="orders-app")
    [line] = _lines(capsys)
    assert "warning" in line
    assert "gave up" in line
    assert "application=orders-app" in line
    assert "\x1b" not in line


def test_lines_below_level_are_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    configure_log("json", "warning")
    structlog.get_logger().info("a")
    structlog.get_logger().error("b")
    assert len(_lines(capsys)) == 1


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_never_show(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_log("json" if form == "json" else "console", "debug", redacted_texts((SECRET, None, ""), {}))
    log = structlog.get_logger()
    connection = Connection(bootstrap_servers=("b:9092",), username="u", password=SECRET)
    url = f"http://u:{SECRET}@b"
    log.info("%s", url, connection=connection, access=Access("h", 1, SECRET))
    log.info(
        "nested", settings={"sasl.password": "other-secret", "list": [f"x{SECRET}"]}, token="other-secret"
    )
    log.info("object", found=ValueError(SECRET))
    try:
        int(SECRET)
    except ValueError:
        log.exception("failed")
    text = "\n".join(_lines(capsys))
    assert SECRET not in text
    assert "other-secret" not in text
    assert "***" in text
    assert "ValueError" in text


def test_lines_go_to_current_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    configure_log()
    log = structlog.get_logger()
    taken_over = io.StringIO()
    monkeypatch.setattr("sys.stderr", taken_over)
    log.warning("query failed", query="orders")
    assert "query failed" in taken_over.getvalue()
