"""Certificates for a broker on the loopback interface."""

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from headwater.toolchain.broker import Tls


def pkcs8(key: trustme.Blob) -> str:
    """Return `key` in the one format that Kafka reads."""
    loaded = load_pem_private_key(key.bytes(), password=None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def server_tls(authority: trustme.CA, *, client_certificate_required: bool = False) -> Tls:
    leaf = authority.issue_cert("127.0.0.1", "localhost")
    return Tls(
        certificate_chain="".join(part.bytes().decode() for part in leaf.cert_chain_pems),
        key=pkcs8(leaf.private_key_pem),
        authority=authority.cert_pem.bytes().decode(),
        client_certificate_required=client_certificate_required,
    )
