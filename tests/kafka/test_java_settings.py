"""A connection in the words of the Java client, which Spark reads Kafka by."""

import attrs
import pytest

from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError

_CA = "-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----"
_CHAIN = "-----BEGIN CERTIFICATE-----\nclient\n-----END CERTIFICATE-----"
_KEY = "-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----"
_TLS = Connection(
    bootstrap_servers=("a:9093", "b:9093"),
    protocol="SSL",
    ca=_CA,
    certificate=_CHAIN,
    key=_KEY,
    key_password="p",
)
_SCRAM = Connection(
    bootstrap_servers=("a:9093",),
    protocol="SASL_SSL",
    mechanism="SCRAM-SHA-512",
    username="ann",
    password='quoted " and \\',
    verify_hostname=False,
)


def test_plaintext_requires_only_addresses_in_java() -> None:
    settings = Connection(bootstrap_servers=("a:9092", "b:9092")).java_properties()
    assert settings == {"bootstrap.servers": "a:9092,b:9092", "security.protocol": "PLAINTEXT"}


def test_certificates_are_pem_texts() -> None:
    settings = _TLS.java_properties()
    assert settings["ssl.truststore.type"] == settings["ssl.keystore.type"] == "PEM"
    assert settings["ssl.truststore.certificates"] == _CA
    assert settings["ssl.keystore.certificate.chain"] == _CHAIN
    assert settings["ssl.keystore.key"] == _KEY
    assert settings["ssl.key.password"] == "p"
    assert settings["ssl.endpoint.identification.algorithm"] == "https"


def test_credentials_are_quoted_for_jaas() -> None:
    settings = _SCRAM.java_properties()
    assert settings["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="quoted \\" and \\\\";'
    )
    assert settings["ssl.endpoint.identification.algorithm"] == ""


def test_oauth_has_token_endpoint() -> None:
    settings = Connection(
        bootstrap_servers=("a:9093",),
        protocol="SASL_SSL",
        mechanism="OAUTHBEARER",
        username="id",
        password="secret",
        token_url="https://id.example/token",
        oauth_scopes=("kafka", "read"),
    ).java_properties()
    assert settings["sasl.oauthbearer.token.endpoint.url"] == "https://id.example/token"
    assert 'clientId="id" clientSecret="secret" scope="kafka read";' in settings["sasl.jaas.config"]


def test_java_cannot_skip_certificate_verification() -> None:
    with pytest.raises(ProblemsError) as refused:
        attrs.evolve(_TLS, skip_tls_verify=True).java_properties()
    assert [problem.code for problem in refused.value.problems] == [ProblemCode.INVALID_CONFIG]
