"""Starts Kafka's programs: storage, brokers, command-line tools."""

import base64
import subprocess
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from headwater.toolchain.broker.settings import SaslUser, Settings
from headwater.toolchain.commands import ToolchainError
from headwater.toolchain.kafka import KafkaDistribution

# A broker runs for seconds to hours and shares the machine: little memory, quick to start.
LEAN_JVM = ("-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
# Takes a third of the CPU time of a start off: what runs briefly needs no optimizing compiler.
QUICK_START = "-XX:TieredStopAtLevel=1"
# The process waits, as a shell, until its guard watches it, so it is never left running alone.
_START_AFTER_LINE = 'read -r go && exec "$@" </dev/null'
_SHOWN_LINES = 10
_FAILURE_MARKS = (" ERROR ", " FATAL ", "Exception", "Error:")


def random_cluster_id() -> str:
    """Return 16 random bytes in base64 without `-`: a leading one would make them an option."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")


def stored_cluster_id(folder: Path) -> str | None:
    """Return the cluster id that the data in `folder` was formatted with, None if there is no data yet."""
    try:
        lines = (folder / "data" / "meta.properties").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    return next((line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id=")), None)


def format_storage(
    distribution: KafkaDistribution, properties: Path, cluster_id: str, users: Iterable[SaslUser]
) -> None:
    """Prepare the data folder that `properties` names; raises `ToolchainError`."""
    credentials = [
        f"{mechanism}=[name={user.name},password={user.password}]"
        for user in users
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    scram = [argument for credential in credentials for argument in ("--add-scram", credential)]
    storage = ("format", "--cluster-id", cluster_id, "--config", properties)
    run_tool(
        distribution, "kafka.tools.StorageTool", *storage, *scram, failure="Kafka could not format its data"
    )


def _java_command(distribution: KafkaDistribution) -> tuple[str | Path, ...]:
    return (distribution.java, *LEAN_JVM, *distribution.java_options)


def tool_command(distribution: KafkaDistribution, main: str) -> tuple[str | Path, ...]:
    """Return the command line of one of Kafka's programs, without its arguments."""
    java = _java_command(distribution)
    return (*java, QUICK_START, "-Xmx128m", "-cp", distribution.class_path, main)


def run_tool(distribution: KafkaDistribution, main: str, *arguments: str | Path, failure: str) -> None:
    """Run one of Kafka's command line programs; raises `ToolchainError` with `failure` and the reason."""
    command = [*tool_command(distribution, main), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(f"{failure}.\n{reasons(done.stdout + done.stderr)}")


def reasons(output: str) -> str:
    """Return the lines of a JVM's output that say why it ended, without stack traces."""
    lines = [line for line in output.splitlines() if not line.startswith("\tat ")]
    relevant = [line for line in lines if any(mark in line for mark in _FAILURE_MARKS)] or lines[
        -_SHOWN_LINES:
    ]
    return "\n".join(f"    {line}" for line in relevant)


def launch(
    distribution: KafkaDistribution,
    properties: Path,
    settings: Settings,
    log: Path,
    inherited: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    """Return the broker's process, which waits for `begin`; `inherited` files stay open.

    It has a session of its own, so Ctrl-C reaches this process only.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            [
                *("sh", "-c", _START_AFTER_LINE, "sh"),
                *_java_command(distribution),
                *(f"-Xmx{settings.heap_mb}m", f"-Xms{settings.heap_mb}m"),
                *(() if settings.sustained_load else (QUICK_START,)),
                f"-Dlog4j2.configurationFile={properties.parent / 'log4j2.yaml'}",
                *("-cp", distribution.class_path, "kafka.Kafka", properties),
            ],
            cwd=properties.parent,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=inherited,
        )


def begin(broker: subprocess.Popen[bytes]) -> None:
    """Let a launched broker start."""
    assert broker.stdin is not None  # noqa: S101 - piped by launch
    with broker.stdin:
        broker.stdin.write(b"go\n")


TOOLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topics": "org.apache.kafka.tools.TopicCommand",
        "configs": "kafka.admin.ConfigCommand",
        "acls": "org.apache.kafka.tools.AclCommand",
        "console-producer": "org.apache.kafka.tools.ConsoleProducer",
        "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
        "groups": "org.apache.kafka.tools.GroupsCommand",
        "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
        "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    }
)
"""Tools that take `--bootstrap-server`: `topics` is `kafka-topics.sh`. The values are main classes."""

_SERVER: Final = "--bootstrap-server"


def command(
    distribution: KafkaDistribution, tool: str, bootstrap_servers: str, arguments: Sequence[str]
) -> tuple[str | Path, ...]:
    """Return the command line of a program of `TOOLS`; a `--bootstrap-server` in `arguments` wins."""
    named = any(each.split("=")[0] == _SERVER for each in arguments)
    server = () if named else (_SERVER, bootstrap_servers)
    return (*tool_command(distribution, TOOLS[tool]), *server, *arguments)
