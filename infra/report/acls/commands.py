"""The commands by which an administrator grants rights by hand: `kafka-acls.sh`, which comes with Kafka."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from infra.model.acls import ANY_NAME, Pattern, ResourceKind
from infra.planner.acls import Need
from infra.report.acls.grants import Grants

_OPTIONS = {
    ResourceKind.TOPIC: "--topic",
    ResourceKind.GROUP: "--group",
    ResourceKind.TRANSACTIONAL_ID: "--transactional-id",
    ResourceKind.CLUSTER: "--cluster",
}


def acls_commands(grants: Iterable[Grants], server: str) -> str:
    """Return a shell script, a command for each resource, that grants it on the cluster at `server`."""
    lines = ["#!/bin/sh", "set -eu", ""]
    for part in grants:
        lines += [f"# {re.sub(r'[^ -~]', '?', f'{part.holder}, {part.purpose}')}"]
        lines += _commands(part, server)
        lines += [""]
    return "\n".join(lines)


def _commands(grants: Grants, server: str) -> Iterator[str]:
    for needs in grants.by_resource:
        words = ["kafka-acls.sh", "--bootstrap-server", server, "--add"]
        words += [word for name in grants.principals for word in ("--allow-principal", name)]
        words += [word for host in _hosts(grants) for word in ("--allow-host", host)]
        words += [word for need in needs for word in ("--operation", need.right.operation.value)]
        yield shlex.join([*words, *_resource(needs)])


def _hosts(grants: Grants) -> Sequence[str]:
    return () if grants.hosts == (ANY_NAME,) else grants.hosts


def _resource(needs: Sequence[Need]) -> Sequence[str]:
    right = needs[0].right
    if right.kind is ResourceKind.CLUSTER:
        return [_OPTIONS[right.kind]]
    pattern = ["--resource-pattern-type", "prefixed"] if right.pattern is Pattern.PREFIXED else []
    return [_OPTIONS[right.kind], right.name, *pattern]
