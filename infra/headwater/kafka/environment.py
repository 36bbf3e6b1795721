"""Read a connection from environment variables.

Each setting is read from `HEADWATER_<NAME>`, else from `KAFKA_<NAME>`; the same names as of the Pulumi and
Terraform providers for Kafka. Certificates and keys are PEM texts or paths of PEM files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.kafka.client_settings import broker_region
from headwater.kafka.connection_checks import setting_problem
from headwater.model.problems import Problem, ProblemsError

NO_NAMES: Mapping[str, str] = {}
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")
_MECHANISMS = {
    "SCRAM-SHA256": "SCRAM-SHA-256",
    "SCRAM-SHA512": "SCRAM-SHA-512",
    "AWS-IAM": "AWS_MSK_IAM",
}


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
        return Path(value).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = str(error.strerror) if isinstance(error, OSError) else "not a text"
        raise ProblemsError(
            [
                setting_problem(
                    f"The file that {what} names cannot be read.",
                    expected="a PEM text or the path of a PEM file",
                    found=reason,  # not the value: it may be a key without its first line
                    fix=(
                        f"Set {what} to the whole PEM text, with its line `-----BEGIN`, or to the path of a "
                        "PEM file."
                    ),
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
        own = f"HEADWATER_{setting}"
        return own if self._environment.get(own) else f"KAFKA_{setting}"

    def shown(self, setting: str) -> str:
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
