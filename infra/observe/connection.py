"""How to reach a cluster: one value drives the admin client, the Pulumi provider and Spark alike."""

from collections.abc import Mapping
from typing import Any

import attrs

from infra.model.problems import ProblemsError
from infra.observe import client_settings, java_settings
from infra.observe.connection_checks import connection_problems
from infra.observe.environment import environment_fields
from infra.observe.java_properties import properties_fields


def _hidden(value: object) -> str:
    return "None" if value is None else "***"


@attrs.frozen(kw_only=True)
class Connection:
    """Addresses and security settings. Secrets never show in `repr` or `str`.

    `protocol` and `mechanism` are spelled as in Kafka's client properties (see `connection_checks`). `ca`,
    `certificate` (with its chain) and `key` are PEM texts. For OAUTHBEARER, `username` and `password` are the
    client's id and secret at `token_url`. `skip_tls_verify` trusts any server certificate; `verify_hostname`
    off trusts one of any host, which the provider can only do by trusting any certificate.
    """

    bootstrap_servers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=_hidden)
    ca: str | None = attrs.field(default=None, repr=_hidden)
    certificate: str | None = attrs.field(default=None, repr=_hidden)
    key: str | None = attrs.field(default=None, repr=_hidden)
    key_password: str | None = attrs.field(default=None, repr=_hidden)
    skip_tls_verify: bool = False
    verify_hostname: bool = True
    token_url: str | None = None
    oauth_scopes: tuple[str, ...] = ()
    aws_region: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return every text that must not be printed. Certificates are hidden for their length only."""
        return tuple(text for text in (self.password, self.key, self.key_password) if text)

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    def checked(self) -> "Connection":
        """Return itself; raises `ProblemsError` (InvalidConfig) with everything that is wrong or lacks."""
        problems = connection_problems(self)
        if problems:
            raise ProblemsError(problems)
        return self

    def confluent(self) -> dict[str, Any]:
        """Return librdkafka's settings; raises `ProblemsError`."""
        return client_settings.confluent(self.checked())

    def java(self) -> Mapping[str, str]:
        """Return the Java client's properties, secrets in the clear; raises `ProblemsError`."""
        return java_settings.java(self.checked())

    def provider(self) -> dict[str, Any]:
        """Return the arguments of `pulumi_kafka.Provider`, secrets in the clear; raises `ProblemsError`."""
        return client_settings.provider(self.checked())

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Connection":
        """Read `HEADWATER_*` variables, else `KAFKA_*` ones (see `environment`); raises `ProblemsError`."""
        return cls(**environment_fields(environment)).checked()

    @classmethod
    def from_properties(cls, text: str) -> "Connection":
        """Read the text of a Java `client.properties` file; raises `ProblemsError`."""
        return cls(**properties_fields(text)).checked()
