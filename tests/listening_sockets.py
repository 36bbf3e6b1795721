"""The addresses on which a process and its descendants listen, from /proc."""

import ipaddress
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def listening_addresses(process: int) -> set[str]:
    """Return the TCP addresses, without ports, on which `process` and its descendants listen."""
    inodes = {inode for each in _tree(process) for inode in _inodes(each)}
    listening = {**_listening(Path("/proc/net/tcp")), **_listening(Path("/proc/net/tcp6"))}
    return {address for inode, address in listening.items() if inode in inodes}


def is_loopback(address: str) -> bool:
    """Return whether an address is of the loopback interface; IPv4 addresses may be mapped to IPv6."""
    parsed = ipaddress.ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def _tree(process: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            name, _, rest = status.read_text().rpartition(")")
            children.setdefault(int(rest.split()[1]), []).append(int(name.split()[0]))
    pending = [process]
    while pending:
        each = pending.pop()
        yield each
        pending += children.get(each, [])


def _inodes(process: int) -> Iterator[str]:
    with suppress(OSError):
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                found = _SOCKET.fullmatch(str(file.readlink()))
                if found is not None:
                    yield found[1]


def _listening(table: Path) -> dict[str, str]:
    """Return inode → address of each listening socket."""
    found = {}
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _LISTENS:
            packed = bytes.fromhex(fields[1].partition(":")[0])
            words = struct.unpack(f"<{len(packed) // 4}I", packed)
            family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
            found[fields[9]] = socket.inet_ntop(family, struct.pack(f">{len(words)}I", *words))
    return found
