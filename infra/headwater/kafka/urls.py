"""URLs to which secrets may be sent."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_readable_by_others(url: str) -> bool:
    """Return whether what is sent to `url` leaves this machine without TLS."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:  # no URL: whoever uses it fails
        return True
    return parts.scheme != "https" and not _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
