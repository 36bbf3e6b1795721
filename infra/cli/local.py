"""`headwater local`: a real Kafka broker on this machine, for trying things out."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from toolchain import ToolchainError, ensure_kafka
from toolchain.broker import Settings
from toolchain.broker import local as broker
from toolchain.broker.tools import TOOLS, command


@click.group()
def local() -> None:
    """Start, stop and look at a Kafka broker on this machine.

    It listens on the loopback interface only and keeps its topics until `down --delete-data`.
    """


@local.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=broker.DEFAULT_PORT, show_default=True, help="0: any."
)
@click.option(
    "--heap-mb", type=click.IntRange(min=128), default=256, show_default=True, help="Memory of its JVM."
)
def up(port: int, heap_mb: int) -> None:
    """Start the broker, or find it running.

    \b
    Examples:
      headwater local up
      headwater local up --port 19092
    """
    settings = Settings(heap_mb=heap_mb, sustained_load=True)
    with _told():
        started = broker.up(ensure_kafka(), port=port, settings=settings)
    click.echo(_summary(started))
    click.echo("Stop it: headwater local down")


@local.command()
@click.option("--delete-data", is_flag=True, help="Forget its topics and their records too.")
def down(*, delete_data: bool) -> None:
    """Stop the broker.

    \b
    Examples:
      headwater local down
      headwater local down --delete-data
    """
    with _told():
        was_running = broker.down(delete_data=delete_data)
    click.echo("The local broker is stopped." if was_running else "No local broker was running.")
    if delete_data:
        click.echo("Its data is deleted.")


@local.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(context: click.Context, form: str) -> None:
    """Tell whether the broker runs.

    Exit code 0: it can be used; 1: it cannot.

    \b
    Examples:
      headwater local status
      headwater local status --format json
    """
    running = broker.status()
    ready = running is not None and running.is_ready
    if form == "json":
        click.echo(json.dumps(_facts(running, ready=ready), indent=2))
    elif running is None:
        click.echo(_absence())
    else:
        click.echo(_summary(running) if ready else f"{_summary(running)}\nIt does not answer.")
    context.exit(0 if ready else 1)


@local.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("tool", type=click.Choice(list(TOOLS)), metavar="TOOL")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
def kafka(tool: str, arguments: tuple[str, ...]) -> None:
    """Run a program of Kafka's on the broker, with the options that Kafka documents.

    TOOL is topics (`kafka-topics.sh`), configs, acls, console-producer, console-consumer, consumer-groups,
    streams-groups, groups, get-offsets or delete-records; each tells its options by --help.

    \b
    Examples:
      headwater local kafka topics --create --topic orders --partitions 6
      headwater local kafka console-producer --topic orders --property parse.key=true
      headwater local kafka console-consumer --topic orders --from-beginning
      headwater local kafka consumer-groups --describe --group busy-customers
    """
    running = broker.status()
    if running is None:
        raise click.ClickException(_absence())
    with _told():
        line = command(ensure_kafka(), tool, running.bootstrap_servers, arguments)
    os.execv(line[0], list(map(str, line)))  # noqa: S606 - Ctrl-C and the exit code are the program's own


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ToolchainError as error:
        raise click.ClickException(str(error)) from error


def _summary(running: broker.LocalBroker) -> str:
    return (
        f"Kafka at {running.bootstrap_servers}, process {running.pid}\n"
        f"  cluster id  {running.cluster_id}\n"
        f"  log         {running.log}"
    )


def _absence() -> str:
    if lost := broker.lost():
        return (
            f"No local broker runs. The last one ({lost.bootstrap_servers}, process {lost.pid}) ended without"
            f" `headwater local down`.\n  Its log: {lost.log}\n  Start it again: headwater local up"
        )
    return "No local broker runs.\n  Start one: headwater local up"


def _facts(running: broker.LocalBroker | None, *, ready: bool) -> dict[str, object]:
    if running is None:
        return {"running": False, "ready": False}
    return {
        "running": True,
        "ready": ready,
        "bootstrapServers": running.bootstrap_servers,
        "clusterId": running.cluster_id,
        "pid": running.pid,
        "log": str(running.log),
    }
