"""Read a connection from the `client.properties` of Kafka's own tools (`--command-config`)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headwater.kafka.client_settings import broker_region
from headwater.kafka.connection_checks import setting_problem
from headwater.kafka.environment import pem_text
from headwater.model.problems import ProblemsError

_SEPARATOR = re.compile(r"(?<!\\)[ \t\f]*[=: \t\f][ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


def read_properties(text: str) -> dict[str, str]:
    """Return the entries of a `.properties` text (java.util.Properties#load); of a key, the last counts."""
    return dict(_parse_entry(line) for line in _logical_lines(text))


def properties_fields(text: str) -> dict[str, Any]:
    """Return the fields of `Connection`; raises `ProblemsError` for stores that are not PEM."""
    properties = read_properties(text)
    jaas = _jaas_options(properties.get("sasl.jaas.config", ""))
    identity = _pem_store(properties, "keystore")
    key = properties.get("ssl.keystore.key") or "".join(_KEY.findall(identity or "")) or None
    certificate = (
        properties.get("ssl.keystore.certificate.chain") or _KEY.sub("", identity or "").strip() or None
    )
    servers = tuple(re.findall(r"[^,\s]+", properties.get("bootstrap.servers", "")))
    return {
        "bootstrap_servers": servers,
        "protocol": properties.get("security.protocol", "PLAINTEXT").upper(),
        "mechanism": properties.get("sasl.mechanism"),
        "username": jaas.get("username")
        or jaas.get("clientId")
        or properties.get("sasl.oauthbearer.client.credentials.client.id"),
        "password": jaas.get("password")
        or jaas.get("clientSecret")
        or properties.get("sasl.oauthbearer.client.credentials.client.secret"),
        "ca": properties.get("ssl.truststore.certificates") or _pem_store(properties, "truststore"),
        "certificate": certificate,
        "key": key,
        "key_password": properties.get("ssl.key.password"),
        "token_url": properties.get("sasl.oauthbearer.token.endpoint.url"),
        "oauth_scopes": tuple((jaas.get("scope") or properties.get("sasl.oauthbearer.scope", "")).split()),
        "aws_region": broker_region(servers),
        "verify_hostname": properties.get("ssl.endpoint.identification.algorithm", "https") != "",
    }


def _logical_lines(text: str) -> Iterator[str]:
    """Join continued lines; skip blank lines and comments."""
    pending = ""
    for line in text.splitlines():
        stripped = line.lstrip(" \t\f")
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            pending += stripped[:-1]
            continue
        yield pending + stripped
        pending = ""
    if pending:
        yield pending


def _parse_entry(line: str) -> tuple[str, str]:
    parts = _SEPARATOR.split(line, maxsplit=1)
    return _unescape_text(parts[0]), _unescape_text(parts[1]) if len(parts) > 1 else ""


def _unescape_text(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)

    return _ESCAPE.sub(character, text)


def _jaas_options(text: str) -> dict[str, str]:
    """Return the options of a JAAS line: `Module required name="value" ...;`."""
    return {
        match[1]: re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3] or match[4] or ""
        for match in _JAAS_OPTION.finditer(text)
    }


def _pem_store(properties: Mapping[str, str], store: str) -> str | None:
    location = properties.get(f"ssl.{store}.location")
    if location is None:
        return None
    kind = properties.get(f"ssl.{store}.type", "JKS").upper()
    if kind != "PEM":
        raise ProblemsError(
            [
                setting_problem(
                    f"The {store} {location} is a {kind} file.",
                    expected=f"ssl.{store}.type=PEM",
                    found=kind,
                    fix=f"Convert it: `keytool -importkeystore -srckeystore {location} -destkeystore "
                    "store.p12 -deststoretype PKCS12`, then `openssl pkcs12 -in store.p12 -out store.pem`; "
                    "Java reads PEM files, too.",
                )
            ]
        )
    return pem_text(location, f"ssl.{store}.location")
