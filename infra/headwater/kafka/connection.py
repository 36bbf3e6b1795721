"""How to connect to a cluster: one value for the admin client, the Pulumi provider and Spark.

It is read from environment variables or from the `client.properties` of Kafka's own tools. Each variable is
`HEADWATER_<NAME>`, else `KAFKA_<NAME>`; the Pulumi and Terraform providers for Kafka use the same names.
Certificates and keys are PEM texts or paths of PEM files.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from headwater.kafka import client_settings
from headwater.kafka.client_settings import broker_region
from headwater.kafka.connection_settings import ConnectionSettings, connection_problems, setting_problem
from headwater.kafka.input_files import LARGEST_SETTINGS, read_text
from headwater.model.problems import Problem, ProblemsError

NO_NAMES: Mapping[str, str] = {}
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")
_MECHANISMS = {
    "SCRAM-SHA256": "SCRAM-SHA-256",
    "SCRAM-SHA512": "SCRAM-SHA-512",
    "AWS-IAM": "AWS_MSK_IAM",
}

_SEPARATOR = re.compile(r"(?<!\\)[ \t\f]*[=: \t\f][ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


@attrs.frozen(kw_only=True)
class Connection(ConnectionSettings):
    """Settings that are read from a source and written in the form that each client needs."""

    def checked(self) -> "Connection":
        """Return itself; raises `ProblemsError` (InvalidConfig) for settings that are wrong or missing."""
        problems = connection_problems(self)
        if problems:
            raise ProblemsError(problems)
        return self

    def librdkafka_settings(self) -> dict[str, Any]:
        """Return librdkafka's settings; raises `ProblemsError`."""
        return client_settings.librdkafka_settings(self.checked())

    def java_properties(self) -> Mapping[str, str]:
        """Return the Java client's properties, secrets in the clear; raises `ProblemsError`."""
        return client_settings.java_properties(self.checked())

    def provider_arguments(self) -> dict[str, Any]:
        """Return the arguments of `pulumi_kafka.Provider`, secrets in the clear; raises `ProblemsError`."""
        return client_settings.provider_arguments(self.checked())

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], names: Mapping[str, str] = NO_NAMES
    ) -> "Connection":
        """Read `HEADWATER_*` variables, else `KAFKA_*` ones (`environment_fields`); raises `ProblemsError`.

        `names`: variable → how problems name it, for values that the user set as something else.
        """
        return cls(**environment_fields(environment, names)).checked()

    @classmethod
    def from_properties(cls, text: str) -> "Connection":
        """Read the text of a Java `client.properties` file; raises `ProblemsError`."""
        return cls(**properties_fields(text)).checked()


def environment_fields(environment: Mapping[str, str], names: Mapping[str, str] = NO_NAMES) -> dict[str, Any]:
    """Return the fields of `Connection`; raises `ProblemsError` for values that cannot be read.

    `names`: variable → how problems name it.
    """
    variables = _Variables(environment, names)
    mechanism = variables.text("SASL_MECHANISM")
    if mechanism is None and variables.text("SASL_USERNAME") is not None:
        mechanism = "PLAIN"
    servers = variables.words("BOOTSTRAP_SERVERS")
    fields = {
        "bootstrap_servers": servers,
        "mechanism": _canonical_mechanism(mechanism) if mechanism else None,
        "username": variables.text("SASL_USERNAME"),
        "password": variables.text("SASL_PASSWORD"),
        "ca": variables.pem("CA_CERT"),
        "certificate": variables.pem("CLIENT_CERT"),
        "key": variables.pem("CLIENT_KEY"),
        "key_password": variables.text("CLIENT_KEY_PASSPHRASE"),
        "skip_tls_verify": variables.flag("SKIP_VERIFY") or False,
        "token_url": variables.text("SASL_TOKEN_URL"),
        "oauth_scopes": variables.words("SASL_OAUTH_SCOPES"),
        "aws_region": variables.text("SASL_AWS_REGION")
        or environment.get("AWS_REGION")
        or broker_region(servers),
    }
    fields["protocol"] = variables.text("SECURITY_PROTOCOL") or _protocol_of(
        tls=variables.flag("ENABLE_TLS"),
        certificates=bool(fields["ca"] or fields["certificate"]),
        sasl=mechanism,
    )
    if variables.problems:
        raise ProblemsError(variables.problems)
    return fields


def names_cluster(environment: Mapping[str, str]) -> bool:
    """Return whether the environment has bootstrap servers."""
    return bool(_Variables(environment, NO_NAMES).text("BOOTSTRAP_SERVERS"))


def _canonical_mechanism(name: str) -> str:
    """Return a mechanism in Kafka's spelling; the providers spell some differently."""
    upper = name.upper()
    return _MECHANISMS.get(upper, upper)


def pem_text(value: str, what: str) -> str:
    """Return `value` when it is PEM, else the content of the file of that name; raises `ProblemsError`."""
    if "-----BEGIN" in value:
        return value
    try:
        return read_text(Path(value), LARGEST_SETTINGS)
    except (OSError, UnicodeDecodeError) as error:
        reason = str(error.strerror) if isinstance(error, OSError) else "not a text"
        raise ProblemsError(
            [
                setting_problem(
                    f"The file that {what} names cannot be read.",
                    expected="a PEM text or the path of a PEM file",
                    found=reason,  # not the value: it may be a key without its first line
                    fix=f"Set {what} to the whole PEM text, with its line `-----BEGIN`, or to the path of a "
                    "PEM file.",
                )
            ]
        ) from None


def _protocol_of(*, tls: bool | None, certificates: bool, sasl: str | None) -> str:
    uses_tls = certificates if tls is None else tls
    return ("SASL_" if sasl else "") + ("SSL" if uses_tls else "PLAINTEXT")


class _Variables:
    """Typed access to variables that collects problems."""

    def __init__(self, environment: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._environment = environment
        self._names = names
        self.problems: list[Problem] = []

    def name(self, setting: str) -> str:
        """Return the variable that has a setting."""
        own = f"HEADWATER_{setting}"
        return own if self._environment.get(own) else f"KAFKA_{setting}"

    def shown(self, setting: str) -> str:
        """Return how problems name the variable of a setting."""
        name = self.name(setting)
        return self._names.get(name, name)

    def text(self, setting: str) -> str | None:
        return self._environment.get(self.name(setting)) or None

    def words(self, setting: str) -> tuple[str, ...]:
        words = (self.text(setting) or "").split(",")
        return tuple(word.strip() for word in words if word.strip())

    def pem(self, setting: str) -> str | None:
        value = self.text(setting)
        if value is None:
            return None
        try:
            return pem_text(value, self.shown(setting))
        except ProblemsError as error:
            self.problems += error.problems
            return None

    def flag(self, setting: str) -> bool | None:
        value = self.text(setting)
        if value is None:
            return None
        if value.lower() not in (*_TRUE, *_FALSE):
            self.problems.append(
                setting_problem(
                    f"{self.shown(setting)} is neither true nor false.",
                    expected="true or false",
                    found=value,
                    fix=f"Correct {self.shown(setting)}.",
                )
            )
        return value.lower() in _TRUE


def read_properties(text: str) -> dict[str, str]:
    """Return the entries of a `.properties` text (java.util.Properties#load); of a key, the last counts."""
    return dict(_parse_entry(line) for line in _logical_lines(text))


def properties_fields(text: str) -> dict[str, Any]:
    """Return the fields of `Connection`; raises `ProblemsError` for stores that are not PEM."""
    properties = read_properties(text)
    jaas = _jaas_options(properties.get("sasl.jaas.config", ""))
    identity = _pem_store(properties, "keystore")
    key = properties.get("ssl.keystore.key") or "".join(_KEY.findall(identity or "")) or None
    certificate = (
        properties.get("ssl.keystore.certificate.chain") or _KEY.sub("", identity or "").strip() or None
    )
    servers = tuple(re.findall(r"[^,\s]+", properties.get("bootstrap.servers", "")))
    return {
        "bootstrap_servers": servers,
        "protocol": properties.get("security.protocol", "PLAINTEXT").upper(),
        "mechanism": properties.get("sasl.mechanism"),
        "username": jaas.get("username")
        or jaas.get("clientId")
        or properties.get("sasl.oauthbearer.client.credentials.client.id"),
        "password": jaas.get("password")
        or jaas.get("clientSecret")
        or properties.get("sasl.oauthbearer.client.credentials.client.secret"),
        "ca": properties.get("ssl.truststore.certificates") or _pem_store(properties, "truststore"),
        "certificate": certificate,
        "key": key,
        "key_password": properties.get("ssl.key.password"),
        "token_url": properties.get("sasl.oauthbearer.token.endpoint.url"),
        "oauth_scopes": tuple((jaas.get("scope") or properties.get("sasl.oauthbearer.scope", "")).split()),
        "aws_region": broker_region(servers),
        "verify_hostname": properties.get("ssl.endpoint.identification.algorithm", "https") != "",
    }


def _logical_lines(text: str) -> Iterator[str]:
    """Join continued lines; skip blank lines and comments."""
    pending = ""
    for line in text.splitlines():
        stripped = line.lstrip(" \t\f")
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            pending += stripped[:-1]
            continue
        yield pending + stripped
        pending = ""
    if pending:
        yield pending


def _parse_entry(line: str) -> tuple[str, str]:
    parts = _SEPARATOR.split(line, maxsplit=1)
    return _unescape_text(parts[0]), _unescape_text(parts[1]) if len(parts) > 1 else ""


def _unescape_text(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)

    return _ESCAPE.sub(character, text)


def _jaas_options(text: str) -> dict[str, str]:
    """Return the options of a JAAS line: `Module required name="value" ...;`."""
    return {
        match[1]: re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3] or match[4] or ""
        for match in _JAAS_OPTION.finditer(text)
    }


def _pem_store(properties: Mapping[str, str], store: str) -> str | None:
    location = properties.get(f"ssl.{store}.location")
    if location is None:
        return None
    kind = properties.get(f"ssl.{store}.type", "JKS").upper()
    if kind != "PEM":
        raise ProblemsError(
            [
                setting_problem(
                    f"The {store} {location} is a {kind} file.",
                    expected=f"ssl.{store}.type=PEM",
                    found=kind,
                    fix=f"Convert it: `keytool -importkeystore -srckeystore {location} -destkeystore "
                    "store.p12 -deststoretype PKCS12`, then `openssl pkcs12 -in store.p12 -out store.pem`; "
                    "Java reads PEM files, too.",
                )
            ]
        )
    return pem_text(location, f"ssl.{store}.location")
