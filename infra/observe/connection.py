"""How to reach a cluster: one value drives the admin client, the Pulumi provider and Spark alike."""

from collections.abc import Mapping
from typing import Any

import attrs


def _hidden(value: object) -> str:
    return "None" if value is None else "***"


@attrs.frozen(kw_only=True)
class Connection:
    """Addresses and security settings, named as in Kafka's client properties. Secrets never show in `repr`.

    `protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; `mechanism` PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or
    AWS_MSK_IAM. `ca`, `certificate` and `key` are PEM texts.
    """

    bootstrap_servers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=_hidden)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = attrs.field(default=None, repr=_hidden)
    key_password: str | None = attrs.field(default=None, repr=_hidden)
    skip_tls_verify: bool = False
    token_url: str | None = None
    oauth_scopes: tuple[str, ...] = ()
    aws_region: str | None = None

    def confluent(self) -> dict[str, Any]:
        """Return the librdkafka settings."""
        raise NotImplementedError

    def provider(self) -> dict[str, Any]:
        """Return the arguments of `pulumi_kafka.Provider`."""
        raise NotImplementedError

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Connection":
        """Read `KAFKA_*` and `HEADWATER_*` variables; raises `ProblemsError`."""
        raise NotImplementedError

    @classmethod
    def from_properties(cls, text: str) -> "Connection":
        """Read the text of a Java `client.properties`; raises `ProblemsError`."""
        raise NotImplementedError
