"""The TLS context of a connection, for the sockets that Headwater opens itself."""

import os
import ssl
from tempfile import TemporaryFile
from typing import IO

from headwater.kafka.connection_settings import ConnectionSettings


def tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Return the context; raises `OSError`, `ValueError` for certificates and keys that OpenSSL rejects."""
    context = ssl.create_default_context(cadata=settings.ca)
    # Python 3.13 rejects certificates of private authorities that librdkafka and Java accept.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = settings.verify_hostname and not settings.skip_tls_verify
    if settings.skip_tls_verify:
        context.verify_mode = ssl.CERT_NONE
    if settings.certificate is not None and settings.key is not None:
        _load_identity(context, f"{settings.key}\n{settings.certificate}", settings.key_password)
    return context


def _load_identity(context: ssl.SSLContext, identity: str, password: str | None) -> None:
    """Load a key and its certificates. OpenSSL reads them from a file: this one has no name."""
    with _unnamed_file() as file:
        file.write(identity.encode())
        file.flush()
        file.seek(0)
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(f"/dev/fd/{file.fileno()}", password=password or "")


def _unnamed_file() -> IO[bytes]:
    """Return a file that no other process finds, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("identity"), "w+b")
    return TemporaryFile()
