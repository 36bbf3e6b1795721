"""The addresses and security settings of a connection, as a user gave them, and the checks of them.

No text of a check shows a secret.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

import attrs

from headwater.model.problems import Problem, ProblemCode

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM")


def _set_by(variable: str, key: str, entry: str) -> str:
    """Return the instruction to set a variable, a key of the stack, or an entry of `client.properties`."""
    return (
        f"Set HEADWATER_{variable}, `headwater:{key}` in a stack, or `{entry}` in the file of "
        "`--command-config`."
    )


_USER = _set_by("SASL_USERNAME", "saslUsername", "sasl.jaas.config")
_PRIVATELY = (
    "Set HEADWATER_SASL_PASSWORD, run `pulumi config set --secret headwater:saslPassword`, or set "
    "`sasl.jaas.config` in the file of `--command-config`. Never write it into a document."
)
_SET_BY = {
    "user name": _USER,
    "password": _PRIVATELY,
    "client id (user name)": _USER,
    "client secret (password)": _PRIVATELY,
    "token URL": _set_by("SASL_TOKEN_URL", "saslTokenUrl", "sasl.oauthbearer.token.endpoint.url"),
    "AWS region": "Set HEADWATER_SASL_AWS_REGION, or `headwater:saslAwsRegion` in a stack. With "
    "`--command-config`, name the brokers by their addresses of AWS, which contain the region.",
}
"""What is missing → what to set."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_HIGHEST_PORT = 65_535
_HARMLESS = re.compile(r"(?:[A-Za-z_]+://)?[A-Za-z0-9._-]*(?::[0-9]*)?/?")
"""What an address may be to be printed, although it is wrong: no `user:password`."""


def _redact_value(value: object) -> str:
    return "None" if value is None else "***"


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """Addresses and security settings, not checked. Secrets never show in `repr` or `str`.

    `protocol` and `mechanism` are spelled as in Kafka's client properties: `PROTOCOLS`, `MECHANISMS`.
    `ca`, `certificate` (with its chain) and `key` are PEM texts. For OAUTHBEARER, `username` and `password`
    are the client's id and secret at `token_url`. `skip_tls_verify` trusts any server certificate.
    `verify_hostname` off trusts a certificate for any host; the Pulumi provider then trusts any certificate.
    """

    bootstrap_servers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=_redact_value)
    ca: str | None = attrs.field(default=None, repr=_redact_value)
    certificate: str | None = attrs.field(default=None, repr=_redact_value)
    key: str | None = attrs.field(default=None, repr=_redact_value)
    key_password: str | None = attrs.field(default=None, repr=_redact_value)
    skip_tls_verify: bool = False
    verify_hostname: bool = True
    token_url: str | None = None
    oauth_scopes: tuple[str, ...] = ()
    aws_region: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return every text that must not be printed. Certificates are public: `repr` hides their length."""
        return tuple(text for text in (self.password, self.key, self.key_password) if text)

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")


def is_readable_by_others(url: str) -> bool:
    """Return whether what is sent to `url` leaves this machine without TLS."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:  # no URL: whoever uses it fails
        return True
    return parts.scheme != "https" and not _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def connection_problems(connection: ConnectionSettings) -> tuple[Problem, ...]:
    """Return a problem for each setting that is wrong or missing."""
    return (
        *_check_addresses(connection),
        *_check_protocol(connection),
        *_check_credentials(connection),
        *_check_tls(connection),
    )


def setting_problem(summary: str, *, expected: str, found: str, fix: str) -> Problem:
    """Return a problem with the settings of a connection."""
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=summary,
        expected=expected,
        found=found,
        why="Without a connection, the cluster can be neither read nor changed.",
        fix=fix,
    )


def _check_addresses(connection: ConnectionSettings) -> Iterator[Problem]:
    if not connection.bootstrap_servers:
        yield setting_problem(
            "No Kafka broker is named.",
            expected="bootstrap servers, host:port",
            found="none",
            fix="Set HEADWATER_BOOTSTRAP_SERVERS, `headwater:bootstrapServers` in a stack (`--stack-state` "
            "does not read it), or `--bootstrap-server` on the command line.",
        )
    if any("@" in address or "%40" in address for address in connection.bootstrap_servers):
        yield _credentials_in("bootstrap servers", "host:port")
        return
    for address in connection.bootstrap_servers:
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match[2]) <= _HIGHEST_PORT:
            shown = address if _HARMLESS.fullmatch(address) else "a text that is not shown here"
            yield setting_problem(
                f"{shown!r} is not the address of a broker."
                if shown == address
                else "One of the bootstrap servers is not the address of a broker.",
                expected="host:port",
                found=shown,
                fix="Write the bootstrap servers as host:port, several of them separated by commas, without "
                "a scheme.",
            )


def _credentials_in(what: str, expected: str) -> Problem:
    return setting_problem(
        f"The setting for the {what} contains credentials, or something else before an @.",
        expected=expected,
        found="an @ in a text that is not shown here",
        fix="Set user and password in HEADWATER_SASL_USERNAME and HEADWATER_SASL_PASSWORD, and change the "
        "password: an address is no secret, so other programs may have printed it.",
    )


def _check_protocol(connection: ConnectionSettings) -> Iterator[Problem]:
    if connection.protocol not in PROTOCOLS:
        yield _unknown_value("security protocol", connection.protocol, PROTOCOLS)
        return
    if connection.mechanism is not None and connection.mechanism not in MECHANISMS:
        yield _unknown_value("SASL mechanism", connection.mechanism, MECHANISMS)
    if connection.uses_sasl and connection.mechanism is None:
        yield setting_problem(
            f"Security protocol {connection.protocol} needs a SASL mechanism.",
            expected=f"one of {', '.join(MECHANISMS)}",
            found="none",
            fix="Set the SASL mechanism that the brokers' listener offers.",
        )
    if connection.mechanism is not None and not connection.uses_sasl:
        yield setting_problem(
            f"A SASL mechanism is set, but security protocol {connection.protocol} does not use SASL.",
            expected="SASL_SSL or SASL_PLAINTEXT",
            found=connection.protocol,
            fix="Set the security protocol to SASL_SSL, or remove the SASL settings.",
        )


def _unknown_value(what: str, found: str, allowed: tuple[str, ...]) -> Problem:
    return setting_problem(
        f"{found!r} is not a {what}.",
        expected=f"one of {', '.join(allowed)}",
        found=found,
        fix=f"Correct the {what}.",
    )


def _check_credentials(connection: ConnectionSettings) -> Iterator[Problem]:
    if connection.token_url and "@" in connection.token_url:
        yield _credentials_in("token URL", "a URL without user and password")
    if connection.token_url and is_readable_by_others(connection.token_url):
        yield setting_problem(
            "The client secret would be sent to the token URL without TLS.",
            expected="https://",
            found="http://",
            fix="Set a token URL that begins with https://.",
        )
    match connection.mechanism:
        case "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512":
            needed = {"user name": connection.username, "password": connection.password}
        case "OAUTHBEARER":
            needed = {
                "client id (user name)": connection.username,
                "client secret (password)": connection.password,
                "token URL": connection.token_url,
            }
        case "AWS_MSK_IAM":
            needed = {"AWS region": connection.aws_region}
        case _:
            return
    for what, value in needed.items():
        if not value:
            yield setting_problem(
                f"SASL mechanism {connection.mechanism} needs the {what}.",
                expected=f"the {what}",
                found="none",
                fix=_SET_BY[what],
            )
    if connection.mechanism == "AWS_MSK_IAM" and connection.protocol == "SASL_PLAINTEXT":
        yield setting_problem(
            "SASL mechanism AWS_MSK_IAM needs TLS.",
            expected="security protocol SASL_SSL",
            found=connection.protocol,
            fix="Set the security protocol to SASL_SSL and use the port of the IAM listener (9098, public "
            "9198).",
        )


def _check_tls(connection: ConnectionSettings) -> Iterator[Problem]:
    texts = {
        "CA certificate": connection.ca,
        "client certificate": connection.certificate,
        "client key": connection.key,
    }
    given = {what: text for what, text in texts.items() if text}
    for what, text in given.items():
        if "-----BEGIN" not in text:
            yield setting_problem(
                f"The {what} is not in PEM format.",
                expected="text that contains `-----BEGIN ...-----`",
                found="something else",
                fix=f"Convert the {what} to PEM: `openssl x509` for certificates, `openssl pkcs8` for keys.",
            )
    if given and not connection.uses_tls:
        yield setting_problem(
            f"A {next(iter(given))} is set, but security protocol {connection.protocol} does not use TLS.",
            expected="SSL or SASL_SSL",
            found=connection.protocol,
            fix="Set the security protocol to SSL (with SASL: SASL_SSL), or remove the certificates.",
        )
    if bool(connection.certificate) != bool(connection.key):
        missing = "client key" if connection.certificate else "client certificate"
        yield setting_problem(
            f"No {missing} is set.",
            expected="a client certificate together with its key",
            found=f"no {missing}",
            fix=f"Set the {missing}, too; mutual TLS needs both.",
        )
