"""One connection in every spelling: client library, provider, environment, Java properties."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pulumi_kafka
import pytest
from confluent_kafka.admin import AdminClient

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemCode, ProblemsError

SERVERS = ("a.example:9092", "b.example:9093")
CA = "-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nclient\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----"

PLAINTEXT = Connection(bootstrap_servers=SERVERS)
MUTUAL_TLS = Connection(
    bootstrap_servers=SERVERS, protocol="SSL", ca=CA, certificate=CERTIFICATE, key=KEY, key_password="kp"
)
SCRAM = Connection(
    bootstrap_servers=SERVERS,
    protocol="SASL_SSL",
    mechanism="SCRAM-SHA-512",
    username="al",
    password="s3cret",
    ca=CA,
)
OAUTH = Connection(
    bootstrap_servers=SERVERS,
    protocol="SASL_SSL",
    mechanism="OAUTHBEARER",
    username="client",
    password="s3cret",
    token_url="https://id.example/token",
    oauth_scopes=("kafka", "read"),
)
MSK = Connection(
    bootstrap_servers=("b-1.demo.kafka.eu-west-1.amazonaws.com:9098",),
    protocol="SASL_SSL",
    mechanism="AWS_MSK_IAM",
    aws_region="eu-west-1",
)


@pytest.mark.parametrize("connection", [MUTUAL_TLS, SCRAM, OAUTH], ids=["mtls", "scram", "oauth"])
def test_secrets_are_shown_nowhere(connection: Connection) -> None:
    for text in (repr(connection), str(connection), f"{connection}", repr([connection])):
        assert "s3cret" not in text
        assert "kp" not in text
        assert "PRIVATE KEY" not in text


def test_plaintext_requires_only_addresses() -> None:
    assert PLAINTEXT.librdkafka_settings() == {
        "bootstrap.servers": "a.example:9092,b.example:9093",
        "security.protocol": "PLAINTEXT",
    }
    assert PLAINTEXT.provider_arguments() == {
        "bootstrap_servers": list(SERVERS),
        "tls_enabled": False,
        "skip_tls_verify": False,
    }


def test_mutual_tls() -> None:
    assert MUTUAL_TLS.librdkafka_settings() == {
        "bootstrap.servers": "a.example:9092,b.example:9093",
        "security.protocol": "SSL",
        "ssl.ca.pem": CA,
        "ssl.certificate.pem": CERTIFICATE,
        "ssl.key.pem": KEY,
        "ssl.key.password": "kp",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "https",
    }
    assert MUTUAL_TLS.provider_arguments() == {
        "bootstrap_servers": list(SERVERS),
        "tls_enabled": True,
        "skip_tls_verify": False,
        "ca_cert": CA,
        "client_cert": CERTIFICATE,
        "client_key": KEY,
        "client_key_passphrase": "kp",
    }


@pytest.mark.parametrize(
    ("mechanism", "provided"),
    [("PLAIN", "plain"), ("SCRAM-SHA-256", "scram-sha256"), ("SCRAM-SHA-512", "scram-sha512")],
)
def test_passwords(mechanism: str, provided: str) -> None:
    connection = attrs.evolve(SCRAM, mechanism=mechanism)
    settings = connection.librdkafka_settings()
    assert (settings["sasl.mechanism"], settings["sasl.username"], settings["sasl.password"]) == (
        mechanism,
        "al",
        "s3cret",
    )
    arguments = connection.provider_arguments()
    assert (arguments["sasl_mechanism"], arguments["sasl_username"], arguments["sasl_password"]) == (
        provided,
        "al",
        "s3cret",
    )


def test_oauth() -> None:
    settings = OAUTH.librdkafka_settings()
    assert settings["sasl.oauthbearer.method"] == "oidc"
    assert settings["sasl.oauthbearer.scope"] == "kafka read"
    assert settings["sasl.oauthbearer.token.endpoint.url"] == "https://id.example/token"
    assert OAUTH.provider_arguments()["sasl_token_url"] == "https://id.example/token"
    assert OAUTH.provider_arguments()["sasl_oauth_scopes"] == ["kafka", "read"]


def test_msk_iam_signs_tokens_with_amazon_package(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = SimpleNamespace(generate_auth_token=lambda region: (f"token for {region}", 1_500))
    package = SimpleNamespace(MSKAuthTokenProvider=signer)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", package)
    settings = MSK.librdkafka_settings()
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    assert settings["oauth_cb"]("") == ("token for eu-west-1", 1.5)
    assert MSK.provider_arguments()["sasl_mechanism"] == "aws-iam"
    assert MSK.provider_arguments()["sasl_aws_region"] == "eu-west-1"


def test_msk_iam_without_amazon_package_names_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(ProblemsError) as refusal:
        MSK.librdkafka_settings()
    assert "pip install aws-msk-iam-sasl-signer-python" in refusal.value.problems[0].fix


@pytest.mark.parametrize("connection", [PLAINTEXT, SCRAM, OAUTH], ids=["plaintext", "scram", "oauth"])
def test_client_library_accepts_all_settings(connection: Connection) -> None:
    settings = {key: value for key, value in connection.librdkafka_settings().items() if key != "ssl.ca.pem"}
    AdminClient({**settings, "log_level": 0})  # raises for a setting that it does not know


@pytest.mark.parametrize("connection", [PLAINTEXT, MUTUAL_TLS, SCRAM, OAUTH, MSK])
def test_provider_accepts_all_arguments(connection: Connection) -> None:
    arguments = set(pulumi_kafka.ProviderArgs.__init__.__annotations__)
    assert connection.provider_arguments().keys() <= arguments


def problems_of(**changed: object) -> tuple[Problem, ...]:
    with pytest.raises(ProblemsError) as refusal:
        Connection(**{"bootstrap_servers": SERVERS, **changed}).checked()  # type: ignore[arg-type]
    return refusal.value.problems


@pytest.mark.parametrize(
    ("changed", "summary"),
    [
        ({"bootstrap_servers": ()}, "No Kafka broker is named"),
        ({"bootstrap_servers": ("kafka://a:9092",)}, "'kafka://a:9092' is not the address"),
        ({"bootstrap_servers": ("a",)}, "'a' is not the address"),
        ({"bootstrap_servers": ("a:99999",)}, "'a:99999' is not the address"),
        ({"bootstrap_servers": ("user:pw:9092",)}, "One of the bootstrap servers is not the address"),
        ({"bootstrap_servers": ("user:pw@a:9092",)}, "bootstrap servers contains credentials"),
        ({"protocol": "TLS"}, "'TLS' is not a security protocol"),
        ({"protocol": "SASL_SSL"}, "needs a SASL mechanism"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI"}, "'GSSAPI' is not a SASL mechanism"),
        ({"mechanism": "PLAIN", "username": "a", "password": "b"}, "does not use SASL"),
        ({"protocol": "SASL_SSL", "mechanism": "PLAIN", "password": "b"}, "needs the user name"),
        ({"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "a"}, "needs the password"),
        (
            {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "username": "a", "password": "b"},
            "needs the token URL",
        ),
        *(
            (
                {
                    "protocol": "SASL_SSL",
                    "mechanism": "OAUTHBEARER",
                    "username": "a",
                    "password": "b",
                    "token_url": url,
                },
                "token URL without TLS",
            )
            for url in ("http://id.example/token", "HTTP://10.0.0.1:80", "//id.example", "http://[bad")
        ),
        ({"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM"}, "needs the AWS region"),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "AWS_MSK_IAM", "aws_region": "x"}, "needs TLS"),
        ({"protocol": "SSL", "ca": "/etc/ca.jks"}, "CA certificate is not in PEM format"),
        ({"ca": CA}, "does not use TLS"),
        ({"protocol": "SSL", "certificate": CERTIFICATE}, "No client key is set."),
        ({"protocol": "SSL", "key": KEY}, "No client certificate is set."),
    ],
)
def test_inconsistent_settings_are_problems(changed: Mapping[str, object], summary: str) -> None:
    (problem,) = problems_of(**changed)
    assert problem.code is ProblemCode.INVALID_CONFIG
    assert summary in problem.summary
    assert problem.expected
    assert problem.fix


@pytest.mark.parametrize(
    "url", ["https://id.example", "http://127.0.0.1:8080", "http://[::1]:1", "http://localhost"]
)
def test_a_token_url_with_tls_or_on_this_machine_is_accepted(url: str) -> None:
    settings = attrs.evolve(OAUTH, token_url=url)
    assert settings.checked() == settings


def test_all_problems_are_reported_together() -> None:
    assert len(problems_of(bootstrap_servers=(), protocol="SASL_SSL", key=KEY)) == 3


def test_no_problem_shows_a_secret() -> None:
    problems = problems_of(
        protocol="SASL_SSL", mechanism="PLAIN", password="s3cret", key="s3cret", key_password="s3cret"
    )
    assert "s3cret" not in repr(problems)


ENVIRONMENT = {
    "KAFKA_BOOTSTRAP_SERVERS": "a.example:9092, b.example:9093",
    "KAFKA_ENABLE_TLS": "true",
    "KAFKA_SASL_MECHANISM": "scram-sha512",
    "KAFKA_SASL_USERNAME": "al",
    "KAFKA_SASL_PASSWORD": "s3cret",
    "KAFKA_CA_CERT": CA,
}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": "a.example:9092,b.example:9093"}, PLAINTEXT),
        (ENVIRONMENT, SCRAM),
        ({**ENVIRONMENT, "HEADWATER_SASL_USERNAME": "bo"}, attrs.evolve(SCRAM, username="bo")),
        ({**ENVIRONMENT, "KAFKA_ENABLE_TLS": ""}, SCRAM),
        ({**ENVIRONMENT, "KAFKA_SKIP_VERIFY": "1"}, attrs.evolve(SCRAM, skip_tls_verify=True)),
        (
            {
                "KAFKA_BOOTSTRAP_SERVERS": MSK.bootstrap_servers[0],
                "KAFKA_SASL_MECHANISM": "aws-iam",
                "KAFKA_ENABLE_TLS": "true",
            },
            MSK,
        ),
        (
            {
                "HEADWATER_BOOTSTRAP_SERVERS": ",".join(SERVERS),
                "HEADWATER_SECURITY_PROTOCOL": "SASL_SSL",
                "HEADWATER_SASL_MECHANISM": "OAUTHBEARER",
                "HEADWATER_SASL_USERNAME": "client",
                "HEADWATER_SASL_PASSWORD": "s3cret",
                "HEADWATER_SASL_TOKEN_URL": "https://id.example/token",
                "HEADWATER_SASL_OAUTH_SCOPES": "kafka,read",
            },
            OAUTH,
        ),
    ],
)
def test_environment(environment: Mapping[str, str], expected: Connection) -> None:
    assert Connection.from_environment(environment) == expected


def test_environment_may_name_files(tmp_path: Path) -> None:
    for name, text in (("ca", CA), ("cert", CERTIFICATE), ("key", KEY)):
        (tmp_path / name).write_text(text)
    connection = Connection.from_environment(
        {
            "KAFKA_BOOTSTRAP_SERVERS": ",".join(SERVERS),
            "KAFKA_CA_CERT": str(tmp_path / "ca"),
            "KAFKA_CLIENT_CERT": str(tmp_path / "cert"),
            "KAFKA_CLIENT_KEY": str(tmp_path / "key"),
            "KAFKA_CLIENT_KEY_PASSPHRASE": "kp",
        }
    )
    assert connection == MUTUAL_TLS


def test_unreadable_variables_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as refusal:
        Connection.from_environment(
            {"KAFKA_CA_CERT": str(tmp_path / "none"), "HEADWATER_SKIP_VERIFY": "perhaps"}
        )
    summaries = [problem.summary for problem in refusal.value.problems]
    assert summaries == [
        "The file that KAFKA_CA_CERT names cannot be read.",
        "HEADWATER_SKIP_VERIFY is neither true nor false.",
    ]


def test_a_key_without_its_first_line_is_not_shown() -> None:
    with pytest.raises(ProblemsError) as refusal:
        Connection.from_environment({"HEADWATER_CLIENT_KEY": "MIIEvQIBADANBg"})
    [problem] = refusal.value.problems
    assert problem.summary == "The file that HEADWATER_CLIENT_KEY names cannot be read."
    assert problem.found == "No such file or directory"
    assert "-----BEGIN" in problem.fix


JAAS = "org.apache.kafka.common.security.{} required {};"


def properties(**entries: str) -> str:
    lines = {"bootstrap.servers": ",".join(SERVERS), **{k.replace("_", "."): v for k, v in entries.items()}}
    return "\n".join(f"{key}={value}" for key, value in lines.items())


def escaped(text: str) -> str:
    return text.replace("\n", "\\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (properties(), PLAINTEXT),
        (
            properties(
                security_protocol="SASL_SSL",
                sasl_mechanism="SCRAM-SHA-512",
                sasl_jaas_config=JAAS.format("scram.ScramLoginModule", 'username="al" password="s3cret"'),
                ssl_truststore_type="PEM",
                ssl_truststore_certificates=escaped(CA),
            ),
            SCRAM,
        ),
        (
            properties(
                security_protocol="SSL",
                ssl_truststore_certificates=escaped(CA),
                ssl_keystore_certificate_chain=escaped(CERTIFICATE),
                ssl_keystore_key=escaped(KEY),
                ssl_key_password="kp",
            ),
            MUTUAL_TLS,
        ),
        (
            properties(
                security_protocol="SASL_SSL",
                sasl_mechanism="OAUTHBEARER",
                sasl_oauthbearer_token_endpoint_url="https\\://id.example/token",
                sasl_jaas_config=JAAS.format(
                    "oauthbearer.OAuthBearerLoginModule",
                    'clientId=\'client\' clientSecret="s3cret" scope="kafka read"',
                ),
            ),
            OAUTH,
        ),
        (
            properties(
                bootstrap_servers=MSK.bootstrap_servers[0],
                security_protocol="SASL_SSL",
                sasl_mechanism="AWS_MSK_IAM",
                sasl_jaas_config="software.amazon.msk.auth.iam.IAMLoginModule required;",
            ),
            MSK,
        ),
        (
            properties(security_protocol="SSL", ssl_endpoint_identification_algorithm=""),
            Connection(bootstrap_servers=SERVERS, protocol="SSL", verify_hostname=False),
        ),
    ],
    ids=["plaintext", "scram", "mtls", "oauth", "msk", "any host name"],
)
def test_java_properties(text: str, expected: Connection) -> None:
    assert Connection.from_properties(text) == expected


def test_java_properties_may_name_pem_files(tmp_path: Path) -> None:
    (tmp_path / "trust.pem").write_text(CA)
    (tmp_path / "own.pem").write_text(f"{KEY}\n{CERTIFICATE}\n")
    text = properties(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(tmp_path / "trust.pem"),
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(tmp_path / "own.pem"),
        ssl_key_password="kp",
    )
    assert Connection.from_properties(text) == MUTUAL_TLS


def test_java_keystore_is_refused_with_conversion_command() -> None:
    with pytest.raises(ProblemsError) as refusal:
        Connection.from_properties(properties(ssl_truststore_location="trust.jks"))
    (problem,) = refusal.value.problems
    assert problem.found == "JKS"
    assert "keytool -importkeystore" in problem.fix


def test_disabled_hostname_verification_applies_to_both_clients() -> None:
    connection = Connection(bootstrap_servers=SERVERS, protocol="SSL", verify_hostname=False)
    settings: dict[str, Any] = connection.librdkafka_settings()
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert settings["enable.ssl.certificate.verification"] is True
    assert connection.provider_arguments()["skip_tls_verify"] is True


@pytest.mark.parametrize(
    "servers",
    [
        "user:quail@host:9092",
        "sasl://user:quail@host:9092",
        "user:quail@host",
        "good:9092,user:quail@host:9092",
        "user:quail,more-quail@host:9092",
        "user:quail%40host:9092",
        "user:quail:host:9092",
        "user:quail",
    ],
)
@pytest.mark.parametrize("source", ["environment", "properties", "token"])
def test_credentials_in_an_address_are_not_printed(servers: str, source: str) -> None:
    own = f"https://user:quail@{servers[-1:]}"
    oauth = {"HEADWATER_SASL_MECHANISM": "OAUTHBEARER", "HEADWATER_SASL_TOKEN_URL": own}
    read: dict[str, Callable[[], Connection]] = {
        "environment": lambda: Connection.from_environment({"HEADWATER_BOOTSTRAP_SERVERS": servers}),
        "properties": lambda: Connection.from_properties(f"bootstrap.servers={servers}\n"),
        "token": lambda: Connection.from_environment({"HEADWATER_BOOTSTRAP_SERVERS": "a:9092", **oauth}),
    }
    with pytest.raises(ProblemsError) as refused:
        read[source]()
    assert not [problem for problem in refused.value.problems if "quail" in repr(problem)]
    assert "quail" not in str(refused.value)
