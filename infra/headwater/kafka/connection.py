"""How to connect to a cluster: one value for the admin client, the Pulumi provider and Spark."""

from collections.abc import Mapping
from typing import Any

import attrs

from headwater.kafka import client_settings
from headwater.kafka.connection_checks import connection_problems
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.environment import NO_NAMES, environment_fields
from headwater.kafka.java_properties import properties_fields
from headwater.model.problems import ProblemsError


@attrs.frozen(kw_only=True)
class Connection(ConnectionSettings):
    """Settings that are read from a source and written in the form that each client needs."""

    def checked(self) -> "Connection":
        """Return itself; raises `ProblemsError` (InvalidConfig) for settings that are wrong or missing."""
        problems = connection_problems(self)
        if problems:
            raise ProblemsError(problems)
        return self

    def confluent(self) -> dict[str, Any]:
        """Return librdkafka's settings; raises `ProblemsError`."""
        return client_settings.confluent(self.checked())

    def java(self) -> Mapping[str, str]:
        """Return the Java client's properties, secrets in the clear; raises `ProblemsError`."""
        return client_settings.java(self.checked())

    def provider(self) -> dict[str, Any]:
        """Return the arguments of `pulumi_kafka.Provider`, secrets in the clear; raises `ProblemsError`."""
        return client_settings.provider(self.checked())

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], names: Mapping[str, str] = NO_NAMES
    ) -> "Connection":
        """Read `HEADWATER_*` variables, else `KAFKA_*` ones (see `environment`); raises `ProblemsError`.

        `names`: variable → how problems name it, for values that the user set as something else.
        """
        return cls(**environment_fields(environment, names)).checked()

    @classmethod
    def from_properties(cls, text: str) -> "Connection":
        """Read the text of a Java `client.properties` file; raises `ProblemsError`."""
        return cls(**properties_fields(text)).checked()
