"""Settings of a connection for librdkafka, the Pulumi provider and Java; tokens for Amazon MSK; loggers.

Without a logger, librdkafka writes to standard error. Its loggers here are outside the hierarchy of
`logging`, so that no configuration of the root logger sends their lines to standard error.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from headwater.kafka.connection_settings import ConnectionSettings, setting_problem
from headwater.model.problems import Problem, ProblemCode, ProblemsError

_MILLISECONDS = 1_000
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:")


def broker_region(bootstrap_servers: Iterable[str]) -> str | None:
    """Return the AWS region in the host names of MSK brokers, None for other brokers."""
    return next((match[1] for address in bootstrap_servers if (match := _HOST.search(address))), None)


def token_callback(region: str) -> Callable[[str], tuple[str, float]]:
    """Return librdkafka's `oauth_cb`: token, expiry in seconds since the epoch; raises `ProblemsError`."""
    try:
        signer = import_module("aws_msk_iam_sasl_signer").MSKAuthTokenProvider
    except ModuleNotFoundError:
        raise ProblemsError([_NOT_INSTALLED]) from None

    def token(_settings: str) -> tuple[str, float]:
        signed, expires_ms = signer.generate_auth_token(region)
        return signed, expires_ms / _MILLISECONDS

    return token


_NOT_INSTALLED = setting_problem(
    "SASL mechanism AWS_MSK_IAM needs the package aws-msk-iam-sasl-signer-python.",
    expected="the package in the environment that runs Headwater",
    found="not installed",
    fix="Run `pip install aws-msk-iam-sasl-signer-python`, or use SCRAM-SHA-512, which MSK also offers.",
)
_PROVIDER_MECHANISMS = {
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram-sha256",
    "SCRAM-SHA-512": "scram-sha512",
    "OAUTHBEARER": "oauthbearer",
    "AWS_MSK_IAM": "aws-iam",
}


def librdkafka_settings(connection: ConnectionSettings) -> dict[str, Any]:
    """Return librdkafka's settings (its CONFIGURATION.md); AWS_MSK_IAM may raise `ProblemsError`."""
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "security.protocol": connection.protocol,
    }
    if connection.uses_tls:
        settings |= _without_missing(
            {
                "ssl.ca.pem": connection.ca,
                "ssl.certificate.pem": connection.certificate,
                "ssl.key.pem": connection.key,
                "ssl.key.password": connection.key_password,
            }
        )
        settings["enable.ssl.certificate.verification"] = not connection.skip_tls_verify
        settings["ssl.endpoint.identification.algorithm"] = "https" if connection.verify_hostname else "none"
    return settings | _confluent_sasl(connection)


def _confluent_sasl(connection: ConnectionSettings) -> dict[str, Any]:
    match connection.mechanism:
        case None:
            return {}
        case "AWS_MSK_IAM":
            return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": token_callback(connection.aws_region or "")}
        case "OAUTHBEARER":
            return {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                **_without_missing(
                    {
                        "sasl.oauthbearer.client.id": connection.username,
                        "sasl.oauthbearer.client.secret": connection.password,
                        "sasl.oauthbearer.token.endpoint.url": connection.token_url,
                        "sasl.oauthbearer.scope": " ".join(connection.oauth_scopes) or None,
                    }
                ),
            }
        case mechanism:
            return {
                "sasl.mechanism": mechanism,
                "sasl.username": connection.username,
                "sasl.password": connection.password,
            }


def provider_arguments(connection: ConnectionSettings) -> dict[str, Any]:
    """Return the arguments of `pulumi_kafka.Provider`. TLS is always set; its default there is on."""
    return {
        "bootstrap_servers": list(connection.bootstrap_servers),
        "tls_enabled": connection.uses_tls,
        "skip_tls_verify": connection.skip_tls_verify or not connection.verify_hostname,
        **_without_missing(
            {
                "ca_cert": connection.ca,
                "client_cert": connection.certificate,
                "client_key": connection.key,
                "client_key_passphrase": connection.key_password,
                "sasl_mechanism": _PROVIDER_MECHANISMS.get(connection.mechanism or ""),
                "sasl_username": connection.username,
                "sasl_password": connection.password,
                "sasl_token_url": connection.token_url,
                "sasl_oauth_scopes": list(connection.oauth_scopes) or None,
                "sasl_aws_region": connection.aws_region,
            }
        ),
    }


def _without_missing(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
}
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_IAM_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"


def java_properties(connection: ConnectionSettings) -> Mapping[str, str]:
    """Return the client properties, secrets in the clear.

    AWS_MSK_IAM needs Amazon's `aws-msk-iam-auth` jar on the class path.

    Raises:
        ProblemsError: InvalidConfig if the certificate of the server must not be verified: Java has no such
            setting.
    """
    if connection.uses_tls and connection.skip_tls_verify:
        raise ProblemsError([_UNVERIFIABLE])
    settings: dict[str, str | None] = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "security.protocol": connection.protocol,
    }
    if connection.uses_tls:
        settings |= {
            "ssl.truststore.type": "PEM" if connection.ca else None,
            "ssl.truststore.certificates": connection.ca,
            "ssl.keystore.type": "PEM" if connection.certificate else None,
            "ssl.keystore.certificate.chain": connection.certificate,
            "ssl.keystore.key": connection.key,
            "ssl.key.password": connection.key_password,
            "ssl.endpoint.identification.algorithm": "https" if connection.verify_hostname else "",
        }
    if connection.mechanism:
        settings |= _java_sasl(connection, connection.mechanism)
    return {name: value for name, value in settings.items() if value is not None}


def _java_sasl(connection: ConnectionSettings, mechanism: str) -> dict[str, str | None]:
    settings: dict[str, str | None] = {"sasl.mechanism": mechanism}
    match mechanism:
        case "AWS_MSK_IAM":
            options: dict[str, str | None] = {}
            settings["sasl.client.callback.handler.class"] = _IAM_HANDLER
        case "OAUTHBEARER":
            options = {
                "clientId": connection.username,
                "clientSecret": connection.password,
                "scope": " ".join(connection.oauth_scopes) or None,
            }
            settings["sasl.login.callback.handler.class"] = _OAUTH_HANDLER
            settings["sasl.oauthbearer.token.endpoint.url"] = connection.token_url
        case _:
            options = {"username": connection.username, "password": connection.password}
    entries = [f"{name}={_quote_value(value)}" for name, value in options.items() if value is not None]
    settings["sasl.jaas.config"] = " ".join([_MODULES[mechanism], "required", *entries]) + ";"
    return settings


def _quote_value(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_UNVERIFIABLE = Problem(
    code=ProblemCode.INVALID_CONFIG,
    summary="The runtime cannot skip the verification of the brokers' certificates.",
    expected="the certificate authority of the brokers in CA_CERT",
    found="SKIP_VERIFY=true",
    why="Spark reads Kafka with the Java client, which has no such setting.",
    fix="Set the certificate of the authority (HEADWATER_CA_CERT) and remove SKIP_VERIFY.",
)


def client_log(handle: Callable[[str], object] | None = None) -> logging.Logger:
    """Return the `logger` of a client: it passes each line to `handle`, None: lines are dropped."""
    logger = logging.Logger("librdkafka")  # noqa: LOG001 - outside the hierarchy
    logger.addHandler(logging.NullHandler() if handle is None else _CallbackHandler(handle))
    return logger


class _CallbackHandler(logging.Handler):
    def __init__(self, handle: Callable[[str], object]) -> None:
        super().__init__()
        self._handle = handle

    def emit(self, record: logging.LogRecord) -> None:
        self._handle(record.getMessage())
