"""The settings of a connection for Kafka's Java client."""

from collections.abc import Mapping

from headwater.kafka.connection_settings import ConnectionSettings
from headwater.model.problems import Problem, ProblemCode, ProblemsError

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
}
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_IAM_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"


def java(connection: ConnectionSettings) -> Mapping[str, str]:
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
        settings |= _sasl(connection, connection.mechanism)
    return {name: value for name, value in settings.items() if value is not None}


def _sasl(connection: ConnectionSettings, mechanism: str) -> dict[str, str | None]:
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
    entries = [f"{name}={_quoted(value)}" for name, value in options.items() if value is not None]
    settings["sasl.jaas.config"] = " ".join([_MODULES[mechanism], "required", *entries]) + ";"
    return settings


def _quoted(value: str) -> str:
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
