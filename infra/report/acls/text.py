"""Rights as a table to read."""

from collections.abc import Iterable, Iterator, Sequence

from infra.model.acls import ANY_NAME, ResourceKind
from infra.planner.acls import Need
from infra.planner.wording import counted
from infra.report.acls.grants import Grants, shown_name
from infra.report.printable import printable

KIND_WORDS = {
    ResourceKind.TOPIC: "topic",
    ResourceKind.GROUP: "group",
    ResourceKind.TRANSACTIONAL_ID: "transactional id",
    ResourceKind.CLUSTER: "cluster",
}


def acls_text(grants: Iterable[Grants]) -> str:
    """Return a section for each holder: who gets it, then a line for each resource."""
    return "\n\n".join("\n".join(_lines(part)) for part in grants)


def _lines(grants: Grants) -> Iterator[str]:
    yield printable(f"{grants.holder}, {grants.purpose}: {_who(grants)}")
    rows = [_row(needs) for needs in grants.by_resource]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    for kind, name, operations, reason in rows:
        cells = (f"{text:{width}}" for text, width in zip((kind, name, operations), widths, strict=True))
        yield printable(f"  {'  '.join(cells)}  {reason}")


def _row(needs: Sequence[Need]) -> tuple[str, str, str, str]:
    right = needs[0].right
    reasons = dict.fromkeys(need.reason for need in needs)
    operations = ", ".join(need.right.operation for need in needs)
    return KIND_WORDS[right.kind], shown_name(right), operations, "; ".join(reasons)


def _who(grants: Grants) -> str:
    number = counted(len(grants.needs), "right")
    if not grants.principals:
        return f"{number}, for nobody named yet"
    hosts = "" if grants.hosts == (ANY_NAME,) else f" from {', '.join(grants.hosts)}"
    return f"{number} for {', '.join(grants.principals)}{hosts}"
