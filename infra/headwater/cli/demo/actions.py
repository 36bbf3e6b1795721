"""What the steps of the demo do: actions and commands, each with the text of an equivalent shell command."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs
import click

from headwater.cli.demo.environment import DOCUMENTS, Environment, produce_payments, read_payments
from headwater.toolchain.pulumi_cli import Finished


class Action(Protocol):
    """A change of the cluster or the documents. Its output is not shown."""

    def command(self, environment: Environment) -> str:
        """Return the equivalent shell command."""
        ...

    def run(self, environment: Environment) -> None: ...


class Command(Protocol):
    """The command whose output a step shows."""

    def command(self, environment: Environment) -> str: ...

    def run(self, environment: Environment) -> Finished: ...


@attrs.frozen
class Pulumi:
    """A `pulumi` command."""

    arguments: Sequence[str]

    def command(self, environment: Environment) -> str:
        del environment
        return f"pulumi {' '.join(self.arguments)}"

    def run(self, environment: Environment) -> Finished:
        return environment.pulumi(*self.arguments)


@attrs.frozen
class Headwater:
    """A `headwater` command; `with_spark` adds the paths of Spark's jars, which are not shown."""

    arguments: Sequence[str]
    with_spark: bool = False

    def command(self, environment: Environment) -> str:
        return f"headwater {' '.join(self._resolved_arguments(environment))}"

    def run(self, environment: Environment) -> Finished:
        spark = ("--jars", ",".join(environment.jars.spark)) if self.with_spark else ()
        return environment.headwater(*self._resolved_arguments(environment), *spark)

    def _resolved_arguments(self, environment: Environment) -> list[str]:
        """Replace `{broker}` by the broker's address."""
        return [argument.format(broker=environment.broker.bootstrap_servers) for argument in self.arguments]


@attrs.frozen
class Java:
    """A Java program of the demo; it gets the address of the broker and a folder."""

    program: str

    def command(self, environment: Environment) -> str:
        return f"java -cp 'libs/*' {self.program} {environment.broker.bootstrap_servers} state"

    def run(self, environment: Environment) -> Finished:
        folder = environment.folder / "java-state"
        return environment.java(self.program, environment.broker.bootstrap_servers, str(folder))


PREVIEW = Pulumi(("preview",))
UP = Pulumi(("up", "--yes", "--skip-preview"))


@attrs.frozen
class Expand:
    """Adds partitions to a topic, as `kafka-topics.sh` does."""

    topic: str
    partitions: int

    def command(self, environment: Environment) -> str:
        return _topics_command(environment, f"--alter --topic {self.topic} --partitions {self.partitions}")

    def run(self, environment: Environment) -> None:
        environment.expand(self.topic, self.partitions)


@attrs.frozen
class Delete:
    """Deletes a topic, as `kafka-topics.sh` does."""

    topic: str

    def command(self, environment: Environment) -> str:
        return _topics_command(environment, f"--delete --topic {self.topic}")

    def run(self, environment: Environment) -> None:
        environment.delete(self.topic)


@attrs.frozen
class Create:
    """Creates topics (name → partition count) with the same settings, as `kafka-topics.sh` does."""

    topics: Mapping[str, int]
    config: Mapping[str, str] = attrs.field(factory=dict)

    def command(self, environment: Environment) -> str:
        config = "".join(f" --config {key}={value}" for key, value in self.config.items())
        return "\n".join(
            _topics_command(environment, f"--create --topic {topic} --partitions {partitions}{config}")
            for topic, partitions in self.topics.items()
        )

    def run(self, environment: Environment) -> None:
        environment.create(self.topics, self.config)


@attrs.frozen
class Edit:
    """Replaces text in a document, which must contain the old text."""

    document: str
    old: str
    new: str

    def command(self, environment: Environment) -> str:
        del environment
        old, new = self.old.splitlines(), self.new.splitlines()
        removed = (f"  - {line.strip()}" for line in old if line not in new)
        added = (f"  + {line.strip()}" for line in new if line not in old)
        return "\n".join((f"edit {DOCUMENTS}/{self.document}.yaml", *removed, *added))

    def run(self, environment: Environment) -> None:
        file = environment.document(self.document)
        text = file.read_text(encoding="utf-8")
        if self.old not in text:
            raise ValueError(f"{file} does not contain {self.old!r}")
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")


@attrs.frozen
class CopyFile:
    """Copies a file of the demo into the folder."""

    name: str
    target: str

    def command(self, environment: Environment) -> str:
        del environment
        return f"cp ~/{self.name} {self.target}"

    def run(self, environment: Environment) -> None:
        shutil.copy(environment.file(self.name), environment.folder / self.target)


@attrs.frozen
class ProducePayments:
    """Produces payments to a topic; each line of the file has time, category and amount."""

    name: str
    topic: str

    def command(self, environment: Environment) -> str:
        lines = environment.file(self.name).read_text(encoding="utf-8").splitlines()
        return "\n".join((f"produce to {self.topic}:", *(f"  {line}" for line in lines)))

    def run(self, environment: Environment) -> None:
        records = read_payments(environment.file(self.name))
        produce_payments(environment.broker.bootstrap_servers, self.topic, records, environment.first_hour)


@attrs.frozen
class Run:
    """Runs a command that must succeed.

    Its `run` raises `click.ClickException` with the command's output if it fails.
    """

    inner: Command

    def command(self, environment: Environment) -> str:
        return self.inner.command(environment)

    def run(self, environment: Environment) -> None:
        finished = self.inner.run(environment)
        if finished.code:
            raise click.ClickException(f"{self.command(environment)} failed:\n{finished.text}")


def _topics_command(environment: Environment, arguments: str) -> str:
    return f"kafka-topics.sh --bootstrap-server {environment.broker.bootstrap_servers} {arguments}"
