"""What commands read from their command line, and the progress of a move of state that they print."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import click

from headwater.cli.console import print_line, print_problems
from headwater.cli.options import Seconds, Setting
from headwater.model.problems import ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.planner.phrases import seconds_phrase
from headwater.spec import load_documents

conf_option = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
)
_CODE = ("spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives")
_REPORT_SECONDS = 2.0
_DEFAULT_TIMEOUT_SECONDS = 60


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
            print_line(f"{self._application}: {what}", err=True)
        elif total and now - self._printed >= _REPORT_SECONDS:
            self._printed = now
            left = ""
            if done:
                seconds = max(0.0, (now - self._began) / done * (total - done))
                left = f", {seconds_phrase(seconds)} left"
            print_line(f"{self._application}: {what}: {done:,} of {total:,}{left}", err=True)


@attrs.frozen(kw_only=True)
class JavaCode:
    """Where the classes of an application are. `key_serdes` is topic → serde of its keys.

    `timeout_seconds` is how long an answer may take; None = 60.
    """

    jar: Path | None = None
    class_path: Sequence[str] = ()
    properties: Path | None = None
    key_serdes: Mapping[str, str] = attrs.field(factory=dict)
    timeout_seconds: float | None = None

    @property
    def seconds_to_answer(self) -> float:
        return _DEFAULT_TIMEOUT_SECONDS if self.timeout_seconds is None else self.timeout_seconds

    def check(self, classes: Mapping[str, str]) -> None:
        """Raise `click.UsageError` if options are missing or not needed; `classes` is topic → partitioner."""
        if classes and self.jar is None:
            topic, name = next(iter(classes.items()))
            raise click.UsageError(
                f"--partitioner {topic}={name} is no MODULE:FUNCTION. A class of Java requires --jar."
            )
        given = {
            "--jar": self.jar,
            "--classpath": self.class_path,
            "--properties": self.properties,
            "--key-serde": self.key_serdes,
            "--timeout": self.timeout_seconds,
        }
        for option, value in given.items():
            if value and not classes:
                raise click.UsageError(f"{option} requires --partitioner TOPIC=CLASS.")
        if other := sorted(self.key_serdes.keys() - classes.keys()):
            raise click.UsageError(f"--key-serde {other[0]}=… requires --partitioner {other[0]}=CLASS.")


def java_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--jar",
        type=click.Path(exists=True, path_type=Path),
        help="The jar of the application, or a folder of its classes, with a partitioner in Java.",
    ),
    click.option(
        "--classpath",
        "class_path",
        multiple=True,
        metavar="JARS",
        help="With --jar: a jar that the application needs, a folder of classes, or all jars of a folder "
        "('libs/*'). May be repeated.",
    ),
    click.option(
        "--properties",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="With --jar: the properties file that configures the partitioner of a producer, and the serdes.",
    ),
    click.option(
        "--key-serde",
        "key_serdes",
        type=Setting(),
        multiple=True,
        metavar="TOPIC=SERDE",
        help="With --jar: how the keys of a topic are deserialized for the partitioner: string, long, "
        "integer, short, double, float, boolean, uuid, bytes, or a class (Serde or Deserializer). Default: "
        "as the document says. May be repeated.",
    ),
    click.option(
        "--timeout",
        type=Seconds(min=0, min_open=True),
        help="With --jar: seconds until Java is killed if it does not return the partitions of 100,000 keys. "
        f"Default: {_DEFAULT_TIMEOUT_SECONDS}.",
    ),
)
