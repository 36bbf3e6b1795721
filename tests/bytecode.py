"""Byte code of the modules that a test run imports, compiled once and not once per worker.

All workers of a run collect all tests, in the same order and at the same time. In a new checkout, each of
them would compile each module of the product, and rewrite the assertions of each test module: this takes many
seconds of CPU time. So each worker first compiles a part of the files. A file that is not compiled yet when
another worker imports it is compiled twice, as without this.
"""

import compileall
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.excluded_modules import excluded_marks, marks_of_module

_ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = ("infra", "spark_jobs", "tests")
_TESTS = ("test_*.py", "conftest.py")


def compile_part(config: pytest.Config, part: int, parts: int) -> None:
    """Compile one of `parts` parts of the files that a run imports, and that no earlier run has compiled."""
    if sys.dont_write_bytecode or config.getoption("assertmode") != "rewrite":
        return
    excluded = excluded_marks(config.option.markexpr)
    tests = (file for file in collected_files(config.args) if not marks_of_module(_text(file)) & excluded)
    for file in share(tests, part, parts):
        # The same errors occur when the module is imported, which reports them.
        with suppress(OSError, SyntaxError, ValueError):
            rewrite_assertions(file, config)
    modules = (file for folder in _FOLDERS for file in (_ROOT / folder).rglob("*.py"))
    for file in share((file for file in modules if not is_test(file)), part, parts):
        compileall.compile_file(file, quiet=2)


def collected_files(arguments: Sequence[str]) -> Iterator[Path]:
    """Yield the test modules and the `conftest.py` of a run, given the files and folders to collect."""
    for argument in arguments:
        path = Path(argument.partition("::")[0]).absolute()
        yield from filter(is_test, [path] if path.is_file() else path.rglob("*.py"))


def is_test(file: Path) -> bool:
    """Return whether pytest rewrites the assertions of a module."""
    return any(map(file.match, _TESTS))


def share(files: Iterator[Path], part: int, parts: int) -> Sequence[Path]:
    """Return a part of the files; all parts have about the same size.

    Links to files that do not exist are left out: Emacs has one next to each file that it edits.
    """
    by_size = sorted(set(filter(Path.is_file, files)), key=lambda file: (-file.stat().st_size, file))
    return by_size[part % parts :: parts]


def rewrite_assertions(file: Path, config: pytest.Config) -> None:
    """Write the byte code that pytest imports instead of a test module, unless there is some.

    What is out of date is written again when the module is imported.
    """
    folder = rewrite.get_cache_dir(file)
    compiled = folder / f"{file.stem}{rewrite.PYC_TAIL}"
    if not compiled.exists() and rewrite.try_makedirs(folder):
        source, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, compiled)


def _text(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8")
    return ""
