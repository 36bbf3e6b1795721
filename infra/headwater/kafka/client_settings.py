"""The settings of a connection for librdkafka and for the Pulumi provider."""

from typing import Any

from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.msk_iam import token_callback

_PROVIDER_MECHANISMS = {
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram-sha256",
    "SCRAM-SHA-512": "scram-sha512",
    "OAUTHBEARER": "oauthbearer",
    "AWS_MSK_IAM": "aws-iam",
}


def confluent(connection: ConnectionSettings) -> dict[str, Any]:
    """Return librdkafka's settings (its CONFIGURATION.md); AWS_MSK_IAM may raise `ProblemsError`."""
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "security.protocol": connection.protocol,
    }
    if connection.uses_tls:
        settings |= _given(
            {
                "ssl.ca.pem": connection.ca,
                "ssl.certificate.pem": connection.certificate,
                "ssl.key.pem": connection.key,
                "ssl.key.password": connection.key_password,
            }
        )
        settings["enable.ssl.certificate.verification"] = not connection.skip_tls_verify
        settings["ssl.endpoint.identification.algorithm"] = "https" if connection.verify_hostname else "none"
    return settings | _sasl(connection)


def _sasl(connection: ConnectionSettings) -> dict[str, Any]:
    match connection.mechanism:
        case None:
            return {}
        case "AWS_MSK_IAM":
            return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": token_callback(connection.aws_region or "")}
        case "OAUTHBEARER":
            return {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                **_given(
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


def provider(connection: ConnectionSettings) -> dict[str, Any]:
    """Return the arguments of `pulumi_kafka.Provider`. TLS is always set; its default there is on."""
    return {
        "bootstrap_servers": list(connection.bootstrap_servers),
        "tls_enabled": connection.uses_tls,
        "skip_tls_verify": connection.skip_tls_verify or not connection.verify_hostname,
        **_given(
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


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
