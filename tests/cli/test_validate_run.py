"""`headwater validate --run`: what would prevent a start on Spark, without a cluster."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from tests.cli.conftest import Done, Headwater

Validate = Callable[..., Done]

_DOCUMENT = """\
application: {{id: app}}
topology:
  - stream: {{topic: orders, serdes: {{key: string, value: json}}}}
  - filter: {{where: "{where}"}}
  - process: {{class: "{processor}"}}
  - to: out
"""


@pytest.fixture
def validate(headwater: Headwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Validate:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_rules.py").write_text(
        "RATE = 1.2\n\ndef keep(record):\n    return record\n\nclass Broken:\n    pass\n"
    )
    (tmp_path / "shop_broken.py").write_text("import no_such_package\n")
    (tmp_path / "shop_program.py").write_text("raise SystemExit(0)\n")

    def run(where: str = "value.amount > 0", processor: str = "shop_rules:keep", *options: str) -> Done:
        (tmp_path / "app.yaml").write_text(_DOCUMENT.format(where=where, processor=processor))
        for module in ("shop_rules", "shop_broken"):
            sys.modules.pop(module, None)
        return headwater("validate", "app.yaml", *options)

    return run


def test_a_document_that_can_run_is_valid(validate: Validate) -> None:
    assert validate("value.amount > 0", "shop_rules:keep", "--run").returncode == ExitCode.DONE


@pytest.mark.parametrize(
    ("where", "processor", "code", "text"),
    [
        ("value.amount > >", "shop_rules:keep", "UnsupportedExpression", "KSTREAM-FILTER-0000000001"),
        ("no_such_function(value)", "shop_rules:keep", "UnsupportedExpression", "no_such_function"),
        ("true", "shop_rules:missing", "NotRunnable", "shop_rules has no missing"),
        ("true", "shop_broken:keep", "NotRunnable", "No module named 'no_such_package'"),
        ("true", "shop_program:keep", "NotRunnable", "shop_program ends the process"),
        ("true", "shop_rules:RATE", "NotRunnable", "an object of the type float"),
        ("true", "shop_rules:Broken", "NotRunnable", "a class without the method init, process, close"),
    ],
)
def test_what_prevents_a_start_is_an_error_with_its_line(
    validate: Validate,
    where: str,
    processor: str,
    code: str,
    text: str,
) -> None:
    assert validate(where, processor).returncode == ExitCode.DONE, "not checked without --run"
    done = validate(where, processor, "--run")
    assert done.returncode == ExitCode.PROBLEMS
    assert f"error[{code}]" in done.stderr
    assert text in done.stderr
    assert "app.yaml:" in done.stderr


@pytest.mark.parametrize(
    ("handler", "text"),
    [("shop_rules:Missing", "shop_rules has no Missing"), ("shop_rules:Broken", "no subclass of Uncaught")],
)
def test_a_handler_of_failed_threads_that_cannot_be_loaded_prevents_a_start(
    validate: Validate, headwater: Headwater, handler: str, text: str
) -> None:
    validate()  # writes the modules and the document
    document = Path("app.yaml").read_text()
    config = f"application: {{id: app, config: {{uncaught.exception.handler: '{handler}'}}}}"
    Path("app.yaml").write_text(document.replace("application: {id: app}", config))

    assert headwater("validate", "app.yaml").returncode == ExitCode.DONE
    done = headwater("validate", "app.yaml", "--run")

    assert done.returncode == ExitCode.PROBLEMS
    assert text in " ".join(done.stderr.split())
    assert "app.yaml:1:" in done.stderr
