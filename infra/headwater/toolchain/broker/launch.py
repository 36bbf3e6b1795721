"""Start Kafka's programs: storage, brokers, command-line tools. Settings have Kafka's property names."""

import base64
import subprocess
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from headwater.toolchain.broker.readiness import HOST
from headwater.toolchain.commands import ToolchainError
from headwater.toolchain.kafka import KafkaDistribution

_PLAIN_WORD = r"[A-Za-z0-9._-]+"  # needs no quotes in JAAS texts and in arguments of StorageTool
_LOG = "broker.log"
_FIRST_SESSION_MS, _NEXT_SESSION_MS = "30000", "2000"
"""The controller fences a broker that sends no heartbeat for so long, as on a machine that is busy or paused.

A killed broker cannot come back before this has passed, so it is short when a broker is started again.
"""


@attrs.frozen
class SaslUser:
    """A user for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; letters, digits, `.`, `_` and `-` only."""

    name: str = attrs.field(validator=attrs.validators.matches_re(_PLAIN_WORD))
    password: str = attrs.field(repr=False, validator=attrs.validators.matches_re(_PLAIN_WORD))


@attrs.frozen(kw_only=True)
class Tls:
    """PEM texts: the server's certificate chain, its key (PKCS #8) and the authority that signs clients."""

    certificate_chain: str
    key: str = attrs.field(repr=False)
    authority: str
    client_certificate_required: bool = False


@attrs.frozen(kw_only=True)
class Settings:
    """How a broker is started.

    `overrides` are server properties that win over all others. There is always a PLAINTEXT listener, for this
    package itself; its user (ANONYMOUS) is a super user. With `authorizer`, all other users need ACLs.
    `sasl_users` add a SASL_PLAINTEXT listener, `tls` adds an SSL listener, both together also a SASL_SSL
    listener. A broker for `sustained_load` starts more slowly and is faster afterwards; increase its memory,
    too.
    """

    heap_mb: int = 256
    sustained_load: bool = False
    sasl_users: tuple[SaslUser, ...] = ()
    tls: Tls | None = None
    authorizer: bool = False
    overrides: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def protocols(self) -> tuple[str, ...]:
        sasl, tls = bool(self.sasl_users), self.tls is not None
        enabled = {"PLAINTEXT": True, "SASL_PLAINTEXT": sasl, "SSL": tls, "SASL_SSL": sasl and tls}
        return tuple(protocol for protocol, is_enabled in enabled.items() if is_enabled)


def log_file(folder: Path) -> Path:
    """Return the file with the output of the broker in `folder`."""
    return folder / _LOG


def server_properties(settings: Settings, ports: Mapping[str, int], folder: Path) -> dict[str, str]:
    """Return the server properties; `ports` has one for each protocol and for CONTROLLER."""
    listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
    protocols = {"CONTROLLER": "PLAINTEXT", **{protocol: protocol for protocol in settings.protocols}}
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{ports['CONTROLLER']}",
        "controller.listener.names": "CONTROLLER",
        "listeners": listeners,
        "listener.security.protocol.map": ",".join(f"{name}:{p}" for name, p in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "data"),
        # The only broker of its cluster; short intervals.
        "auto.create.topics.enable": "false",
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": _FIRST_SESSION_MS if _is_first_start(folder) else _NEXT_SESSION_MS,
        # By default two empty records a second: writing them takes a quarter of an idle broker's CPU time.
        "metadata.max.idle.interval.ms": "10000",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        **dict(_security_settings(settings, folder)),
        **settings.overrides,
    }


def _is_first_start(folder: Path) -> bool:
    """Return whether no broker was started in `folder` yet."""
    return not log_file(folder).exists()


def _security_settings(settings: Settings, folder: Path) -> Iterator[tuple[str, str]]:
    if settings.authorizer:
        yield "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        yield "super.users", "User:ANONYMOUS"
    if settings.sasl_users:
        yield "sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        accounts = " ".join(f'user_{user.name}="{user.password}"' for user in settings.sasl_users)
        for listener in {"SASL_PLAINTEXT", "SASL_SSL"} & set(settings.protocols):
            prefix = f"listener.name.{listener.lower()}"
            login = "org.apache.kafka.common.security"
            yield f"{prefix}.plain.sasl.jaas.config", f"{login}.plain.PlainLoginModule required {accounts};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                yield f"{prefix}.{mechanism}.sasl.jaas.config", f"{login}.scram.ScramLoginModule required;"
    if settings.tls:
        yield "ssl.keystore.type", "PEM"
        yield "ssl.keystore.location", str(folder / "server.pem")
        yield "ssl.truststore.type", "PEM"
        yield "ssl.truststore.location", str(folder / "authority.pem")
        yield "ssl.client.auth", "required" if settings.tls.client_certificate_required else "none"


def write_files(settings: Settings, ports: Mapping[str, int], folder: Path) -> Path:
    """Write the broker's files to `folder`, readable by the owner only; return server.properties."""
    folder.mkdir(parents=True, exist_ok=True)
    properties = server_properties(settings, ports, folder)
    files = {
        "server.properties": "".join(f"{key}={_escape_value(value)}\n" for key, value in properties.items()),
        "log4j2.yaml": _LOGGING,
    }
    if settings.tls:
        files["server.pem"] = settings.tls.key + settings.tls.certificate_chain
        files["authority.pem"] = settings.tls.authority
    for name, text in files.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
    return folder / "server.properties"


def _escape_value(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


_LOGGING = """\
Configuration:
  status: error
  Appenders:
    Console:
      name: out
      PatternLayout: {pattern: "[%d] %p %m (%c)%n"}
  Loggers:
    Root: {level: info, AppenderRef: {ref: out}}
"""


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
        raise ToolchainError(f"{failure}.\n{failure_lines(done.stdout + done.stderr)}")


def failure_lines(output: str) -> str:
    """Return the lines of a JVM's output that say why it ended, without stack traces."""
    lines = [line for line in output.splitlines() if not line.startswith("\tat ")]
    relevant = [line for line in lines if any(mark in line for mark in _FAILURE_MARKS)] or lines[
        -_SHOWN_LINES:
    ]
    return "\n".join(f"    {line}" for line in relevant)


def launch_broker(
    distribution: KafkaDistribution,
    properties: Path,
    settings: Settings,
    log: Path,
    inherited: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    """Return the broker's process, which waits for `let_start`; `inherited` files stay open.

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


def let_start(broker: subprocess.Popen[bytes]) -> None:
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
        "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    }
)
"""Tools that take `--bootstrap-server`: `topics` is `kafka-topics.sh`. The values are main classes."""

_SERVER: Final = "--bootstrap-server"


def broker_tool_command(
    distribution: KafkaDistribution, tool: str, bootstrap_servers: str, arguments: Sequence[str]
) -> tuple[str | Path, ...]:
    """Return the command line of a program of `TOOLS`; a `--bootstrap-server` in `arguments` wins."""
    named = any(each.split("=")[0] == _SERVER for each in arguments)
    server = () if named else (_SERVER, bootstrap_servers)
    return (*tool_command(distribution, TOOLS[tool]), *server, *arguments)
