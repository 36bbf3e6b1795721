"""What commands read from their command line, and the progress of a move of state that they print."""

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import click

from headwater.cli.console import print_problems
from headwater.model.problems import ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.planner.phrases import seconds_phrase
from headwater.spec import load_documents

conf_option = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
)
_CODE = ("spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives")
_REPORT_SECONDS = 2.0


def parse_conf(conf: Sequence[str]) -> Mapping[str, str]:
    """Return the settings by key; raises `click.BadParameter`."""
    settings = dict(_parse_setting(each) for each in conf)
    _refuse_plain_http(settings)
    return settings


def _parse_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.", param_hint="--conf")
    return name, value


def _refuse_plain_http(settings: Mapping[str, str]) -> None:
    """Refuse code without TLS, in jars, modules, archives or files: others could replace what Spark runs."""
    for name, value in settings.items():
        if name.startswith(_CODE) and "http://" in value.lower():
            raise click.BadParameter(
                f"{name} names an address with http://. Use https://.", param_hint="--conf"
            )


def read_documents(paths: Sequence[Path]) -> Sequence[TopologyDocument]:
    """Return the documents of files and folders; print warnings about them. Raises `ProblemsError`."""
    loaded = load_documents(paths)
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    print_problems(loaded.problems)
    return loaded.documents


def read_single_document(path: Path) -> TopologyDocument:
    """Return the document of a file.

    Raises:
        ProblemsError: It cannot be read.
        click.UsageError: There are several.
    """
    documents = read_documents([path])
    if len(documents) != 1:
        raise click.UsageError(f"{path} has {len(documents)} documents. Name the file of one.")
    return documents[0]


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt the block as SIGINT does, so that it can say what is left to do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@attrs.define
class Progress:
    """Prints progress to standard error: each new step, then a line every few seconds."""

    _application: str
    _what: str = ""
    _began: float = 0.0
    _printed: float = 0.0

    def report(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._printed = what, now, now
            click.echo(f"{self._application}: {what}", err=True)
        elif total and now - self._printed >= _REPORT_SECONDS:
            self._printed = now
            left = f", {seconds_phrase(_seconds_left(now - self._began, done, total))} left" if done else ""
            click.echo(f"{self._application}: {what}: {done:,} of {total:,}{left}", err=True)


def _seconds_left(seconds: float, done: int, total: int) -> float:
    """Return the seconds that are left if `done` of `total` took `seconds`."""
    return max(0.0, seconds / done * (total - done))
