"""The document that `headwater import` writes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import yaml

from infra.model.cluster import ClusterSnapshot
from infra.model.topology import Protocol, StoreDetail
from infra.report.printable import printable


@attrs.frozen(kw_only=True)
class Imported:
    """What is known of a running application: its description, and what the description lacks.

    `repartitions` is undecorated topic → explicit count, `stores` store → details as documents spell them.
    """

    application_id: str
    text: str
    config: Mapping[str, str] = attrs.field(factory=dict)
    repartitions: Mapping[str, int] = attrs.field(factory=dict)
    stores: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    copartitioned: Sequence[Sequence[str]] = ()
    uses_streams_protocol: bool = False
    observed: str = ""
    """What was seen of the application's group, for a comment."""

    def document(self, questions: Iterable[str] = ()) -> str:
        """Return the YAML text, the description as a block where YAML can hold it so; `questions` end it."""
        application: dict[str, Any] = {"id": self.application_id}
        if self.uses_streams_protocol:
            application["protocol"] = Protocol.STREAMS.value
        if self.config:
            application["config"] = dict(self.config)
        described: dict[str, Any] = {"text": _Block(self.text)}
        if self.repartitions:
            described["repartitions"] = dict(self.repartitions)
        if self.stores:
            described["stores"] = {name: dict(details) for name, details in self.stores.items()}
        if self.copartitioned:
            described["copartitioned"] = [list(group) for group in self.copartitioned]
        content = {"version": 1, "application": application, "describe": described}
        text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
        if self.observed:
            text += f"# {printable(self.observed)}\n"
        return text + "".join(f"# Missing: {printable(question)}\n" for question in questions)


def told_of_group(id_: str, snapshot: ClusterSnapshot) -> str:
    """What the cluster says of the application's group, in one sentence."""
    group = snapshot.groups.get(id_)
    if group is None:
        return f"Cluster {snapshot.cluster_id} has no group {id_}: the application does not run there now."
    if group.members is None:
        return f"Group {id_} on cluster {snapshot.cluster_id} is one of the streams protocol."
    members = f"{group.members} member{'' if group.members == 1 else 's'}"
    return f"Group {id_} on cluster {snapshot.cluster_id} is in the state {group.state}, with {members}."


def store_options(detail: StoreDetail) -> Mapping[str, Any]:
    """Return the details of a store as a document spells them."""
    options: dict[str, Any] = {"kind": detail.kind}
    if detail.retention_ms is not None:
        options["retention"] = _duration(detail.retention_ms)
    if detail.retain_duplicates:
        options["retainDuplicates"] = True
    if not detail.logging:
        options["logging"] = False
    if detail.overrides:
        options["overrides"] = dict(detail.overrides)
    if detail.source_topic is not None:
        options["sourceTopic"] = detail.source_topic
    return options


def _duration(milliseconds: int) -> str | int:
    """Return the duration in the largest unit that divides it."""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return milliseconds


class _Block(str):
    """A text that is written as a block of lines."""

    __slots__ = ()


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes `_Block` as a literal block, in quotes where none can hold it; by libyaml if there is one."""


_Dumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)
