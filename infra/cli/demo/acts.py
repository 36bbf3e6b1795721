"""What happens in a step. Each act has the command that a person would type, and does it on the stage."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs
import click

from infra.cli.demo.stage import DOCUMENTS, Stage
from infra.cli.demo.traffic import pay, payments
from infra.cli.pulumi_project import Finished


class Act(Protocol):
    """Something done to the cluster or the documents, without output worth showing."""

    def command(self, stage: Stage) -> str:
        """Return how a person would do it."""
        ...

    def do(self, stage: Stage) -> None: ...


class Command(Protocol):
    """The command that a step is about."""

    def command(self, stage: Stage) -> str: ...

    def run(self, stage: Stage) -> Finished: ...


@attrs.frozen
class Pulumi:
    arguments: Sequence[str]

    def command(self, stage: Stage) -> str:
        del stage
        return f"pulumi {' '.join(self.arguments)}"

    def run(self, stage: Stage) -> Finished:
        return stage.pulumi(*self.arguments)


@attrs.frozen
class Headwater:
    """`with_spark` adds what the demo knows of this machine, and nobody needs to see."""

    arguments: Sequence[str]
    with_spark: bool = False

    def command(self, stage: Stage) -> str:
        return f"headwater {' '.join(self._filled(stage))}"

    def run(self, stage: Stage) -> Finished:
        spark = ("--jars", ",".join(stage.spark_jars)) if self.with_spark else ()
        return stage.headwater(*self._filled(stage), *spark)

    def _filled(self, stage: Stage) -> list[str]:
        """`{broker}` stands for the broker's address."""
        return [argument.format(broker=stage.broker.bootstrap_servers) for argument in self.arguments]


PREVIEW = Pulumi(("preview",))
UP = Pulumi(("up", "--yes", "--skip-preview"))


@attrs.frozen
class Expand:
    """Somebody adds partitions with Kafka's own tools."""

    topic: str
    partitions: int

    def command(self, stage: Stage) -> str:
        return _topics(stage, f"--alter --topic {self.topic} --partitions {self.partitions}")

    def do(self, stage: Stage) -> None:
        stage.expand(self.topic, self.partitions)


@attrs.frozen
class Delete:
    topic: str

    def command(self, stage: Stage) -> str:
        return _topics(stage, f"--delete --topic {self.topic}")

    def do(self, stage: Stage) -> None:
        stage.delete(self.topic)


@attrs.frozen
class Create:
    topics: Mapping[str, int]
    config: Mapping[str, str] = attrs.field(factory=dict)

    def command(self, stage: Stage) -> str:
        config = "".join(f" --config {key}={value}" for key, value in self.config.items())
        return "\n".join(
            _topics(stage, f"--create --topic {topic} --partitions {partitions}{config}")
            for topic, partitions in self.topics.items()
        )

    def do(self, stage: Stage) -> None:
        stage.create(self.topics, self.config)


@attrs.frozen
class Edit:
    """Lines of a document are replaced by others; the old text must be there."""

    document: str
    old: str
    new: str

    def command(self, stage: Stage) -> str:
        del stage
        old, new = self.old.splitlines(), self.new.splitlines()
        removed = (f"  - {line.strip()}" for line in old if line not in new)
        added = (f"  + {line.strip()}" for line in new if line not in old)
        return "\n".join((f"edit {DOCUMENTS}/{self.document}.yaml", *removed, *added))

    def do(self, stage: Stage) -> None:
        file = stage.document(self.document)
        text = file.read_text(encoding="utf-8")
        if self.old not in text:
            raise ValueError(f"{file} does not hold {self.old!r}")
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")


@attrs.frozen
class Bring:
    """A file comes from elsewhere: a document from a colleague, a text from an application's log."""

    name: str
    target: str

    def command(self, stage: Stage) -> str:
        del stage
        return f"cp ~/{self.name} {self.target}"

    def do(self, stage: Stage) -> None:
        shutil.copy(stage.material(self.name), stage.folder / self.target)


@attrs.frozen
class Pay:
    """Records come in: hour and minute, category and amount, a line each."""

    name: str
    topic: str

    def command(self, stage: Stage) -> str:
        lines = stage.material(self.name).read_text(encoding="utf-8").splitlines()
        return "\n".join((f"produce to {self.topic}:", *(f"  {line}" for line in lines)))

    def do(self, stage: Stage) -> None:
        records = payments(stage.material(self.name))
        pay(stage.broker.bootstrap_servers, self.topic, records, stage.first_hour)


@attrs.frozen
class Run:
    """A command on the way to the step's own one; it must succeed."""

    what: Command

    def command(self, stage: Stage) -> str:
        return self.what.command(stage)

    def do(self, stage: Stage) -> None:
        finished = self.what.run(stage)
        if finished.code:
            raise click.ClickException(f"{self.command(stage)} failed:\n{finished.text}")


def _topics(stage: Stage, arguments: str) -> str:
    return f"kafka-topics.sh --bootstrap-server {stage.broker.bootstrap_servers} {arguments}"
