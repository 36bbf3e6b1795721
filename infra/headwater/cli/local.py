"""`headwater local`: a Kafka broker on this machine, for experiments."""

import json
import os

import click

from headwater.cli.console import print_line
from headwater.toolchain import ensure_kafka
from headwater.toolchain.broker import Settings
from headwater.toolchain.broker import local as broker
from headwater.toolchain.broker.launch import TOOLS, broker_tool_command


@click.group()
def local() -> None:
    """Start, stop and inspect a Kafka broker on this machine.

    The broker listens only on the loopback interface. It keeps its topics until `down --delete-data`.
    """


@local.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=broker.DEFAULT_PORT,
    show_default=True,
    help="0: any free port.",
)
@click.option(
    "--heap-mb",
    type=click.IntRange(min=128),
    default=256,
    show_default=True,
    help="Heap size of its JVM, in MB.",
)
def up(port: int, heap_mb: int) -> None:
    """Start the broker, if it is not running.

    \b
    Examples:
      headwater local up
      headwater local up --port 19092
    """
    settings = Settings(heap_mb=heap_mb, sustained_load=True)
    started = broker.up(ensure_kafka(), port=port, settings=settings)
    print_line(_summary_of(started))
    print_line("Stop it: headwater local down")


@local.command()
@click.option("--delete-data", is_flag=True, help="Also delete its topics and records.")
def down(*, delete_data: bool) -> None:
    """Stop the broker.

    \b
    Examples:
      headwater local down
      headwater local down --delete-data
    """
    was_running = broker.down(delete_data=delete_data)
    print_line("The local broker is stopped." if was_running else "No local broker was running.")
    if delete_data:
        print_line("Its data is deleted.")


@local.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(context: click.Context, form: str) -> None:
    """Show whether the broker is running.

    Exit code 0: it is ready; 1: it is not.

    \b
    Examples:
      headwater local status
      headwater local status --format json
    """
    running = broker.status()
    ready = running is not None and running.is_ready
    if form == "json":
        print_line(json.dumps(_status_json(running, ready=ready), indent=2))
    elif running is None:
        print_line(_not_running())
    else:
        print_line(_summary_of(running) if ready else f"{_summary_of(running)}\nIt does not answer.")
    context.exit(0 if ready else 1)


@local.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("tool", type=click.Choice(list(TOOLS)), metavar="TOOL")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
def kafka(tool: str, arguments: tuple[str, ...]) -> None:
    """Run one of Kafka's command line tools on the broker, with its own options.

    TOOL is topics (`kafka-topics.sh`), configs, acls, console-producer, console-consumer, consumer-groups,
    streams-groups, groups, get-offsets, delete-records or streams-application-reset. Each one lists its
    options with --help.

    \b
    Examples:
      headwater local kafka topics --create --topic orders --partitions 6
      headwater local kafka console-producer --topic orders --property parse.key=true
      headwater local kafka console-consumer --topic orders --from-beginning
      headwater local kafka consumer-groups --describe --group busy-customers
    """
    running = broker.status()
    if running is None:
        raise click.ClickException(_not_running())
    line = broker_tool_command(ensure_kafka(), tool, running.bootstrap_servers, arguments)
    os.execv(line[0], list(map(str, line)))  # noqa: S606 - the tool gets Ctrl-C and sets the exit code


def _summary_of(running: broker.LocalBroker) -> str:
    return (
        f"Kafka at {running.bootstrap_servers}, process {running.pid}\n"
        f"  cluster id  {running.cluster_id}\n"
        f"  log         {running.log}"
    )


def _not_running() -> str:
    if lost := broker.find_crashed_broker():
        return (
            f"No local broker is running. The last one ({lost.bootstrap_servers}, process {lost.pid}) "
            "stopped without `headwater local down`.\n"
            f"  Its log: {lost.log}\n  Start it again: headwater local up"
        )
    return "No local broker is running.\n  Start one: headwater local up"


def _status_json(running: broker.LocalBroker | None, *, ready: bool) -> dict[str, object]:
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
