"""The texts that are redacted: each form in which a secret can occur, longest first."""

from collections.abc import Mapping

import pytest

from headwater.control.logs import redact_text, redacted_texts

PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIB
  ADANBgkqhkiG9w0
short=
-----END PRIVATE KEY-----
"""


def test_a_secret_is_redacted_in_each_form() -> None:
    """As it is, escaped in JSON and in a representation of Python, in a URL, and in a header."""
    assert redacted_texts(['ä"b/c\\d'], {}) == (
        "%C3%A4%22b%2Fc%5Cd",
        '\\u00e4\\"b/c\\\\d',
        "w6QiYi9jXGQ=",
        'ä\\"b/c\\\\d',
        'ä"b/c\\\\d',
        'ä"b/c\\d',
    )


def test_the_longest_text_is_redacted_first() -> None:
    texts = redacted_texts(["word", "password-word"], {})
    assert texts.index("password-word") < texts.index("word")
    assert redact_text("password-word, word", texts) == "***, ***"


def test_the_lines_of_a_pem_text_are_secrets() -> None:
    texts = redacted_texts([PEM], {})
    assert {"MIIEvQIB", "ADANBgkqhkiG9w0", PEM, PEM.strip()} <= set(texts)
    assert not {"short=", "-----BEGIN PRIVATE KEY-----"} & set(texts)
    assert "MIIEvQIB" not in redacted_texts([PEM.replace("-----", "")], {}), "other texts are one secret"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SCHEMA_REGISTRY_USER_INFO": "user:pass:word"}, {"user:pass:word", "pass:word"}),
        ({"SCHEMA_REGISTRY_USER_INFO": "only-user"}, {"only-user"}),
        ({"HEADWATER_CONTROL_TOKEN": "four"}, {"four"}),
        ({"HEADWATER_CONTROL_TOKEN": "abc", "AWS_SESSION_TOKEN": ""}, set()),
        ({"PATH": "/usr/bin"}, set()),
        ({}, set()),
    ],
)
def test_secrets_of_the_environment(environment: Mapping[str, str], expected: set[str]) -> None:
    found = redacted_texts(["", None], environment)
    assert {text for text in found if text in expected or text in environment.values()} == expected
    assert bool(found) is bool(expected)
