"""Settings of a broker, and the server.properties made of them (with Kafka's property names)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from headwater.toolchain.broker.readiness import HOST

_PLAIN_WORD = r"[A-Za-z0-9._-]+"  # needs no quotes in JAAS texts and in arguments of StorageTool


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
    """`overrides` are server properties that win over all others.

    There is always a PLAINTEXT listener, for this package itself; its user (ANONYMOUS) is a super user.
    With `authorizer`, all other users need ACLs. `sasl_users` add a SASL_PLAINTEXT listener, `tls` adds an
    SSL listener, both together also a SASL_SSL listener. A broker for `sustained_load` starts more slowly
    and is faster afterwards; increase its memory, too.
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
        "broker.session.timeout.ms": "2000",  # a killed broker cannot come back before this has passed
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
