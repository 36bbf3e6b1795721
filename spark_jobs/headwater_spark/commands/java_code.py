"""The options that name the code of an application in Java."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from headwater.cli.options import Seconds, Setting

_DEFAULT_TIMEOUT_SECONDS = 60


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
