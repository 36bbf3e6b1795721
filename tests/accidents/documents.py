"""The documents of a stack as values: what an operator may declare, and the topics that follow."""

from functools import cache
from typing import Any

import attrs

from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from tests.yaml_text import dump_yaml

AUTOSCALING = {"partition.autoscaling.enabled": True, "static.partitioner.class": "com.example.ByTenant"}


def _names(*names: str) -> Any:  # noqa: ANN401 - as attrs declares it
    return attrs.field(default=frozenset(names), converter=frozenset)


@attrs.frozen(kw_only=True)
class Declared:
    """The document of one application: a repartition topic, and a changelog topic for each of its stores.

    `sink` is a managed sink topic with its retention in milliseconds. `reads` are topics of others.
    """

    id: str
    source: str
    stores: frozenset[str] = _names("a")
    lifecycle: str = "active"
    is_manual: bool = False
    sink: str = ""
    retention: int = 86_400_000
    reads: frozenset[str] = _names()
    retire: frozenset[str] = _names()
    delete: frozenset[str] = _names()
    keep: frozenset[str] = _names()
    adopts: frozenset[str] = _names()
    setup: frozenset[str] = _names()
    """Switches of `setup` that are true."""
    former: str = ""

    @property
    def is_active(self) -> bool:
        return self.lifecycle == "active"

    @property
    def internal(self) -> frozenset[str]:
        """The internal topics that the topology has."""
        return internal_topics(self.id, self.stores)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the document declares."""
        return self.internal | ({self.sink} if self.sink else frozenset())

    @property
    def text(self) -> str:
        return _text(self)


def internal_topics(id_: str, stores: frozenset[str]) -> frozenset[str]:
    return frozenset({f"{id_}-by-customer-repartition", *(changelog(id_, store) for store in stores)})


def changelog(id_: str, store: str) -> str:
    return f"{id_}-{store}-changelog"


@cache
def loaded(declared: Declared) -> TopologyDocument:
    """Return the document as Headwater reads it from its file."""
    found = load_text(declared.text, f"{declared.id}.yaml")
    assert not found.problems, found.problems
    (document,) = found.documents
    return document


@cache
def _text(declared: Declared) -> str:
    config = AUTOSCALING | ({"internal.topics.setup": "manual"} if declared.is_manual else {})
    setup: dict[str, object] = {"allowIdOverlap": True, **dict.fromkeys(sorted(declared.setup), True)}
    if declared.adopts:
        setup["adoptTopics"] = sorted(declared.adopts)
    leftovers = {
        name: sorted(topics)
        for name, topics in (
            ("retire", declared.retire),
            ("delete", declared.delete),
            ("keep", declared.keep),
        )
        if topics
    }
    sink = {declared.sink: {"partitions": "follow", "config": {"retention.ms": declared.retention}}}
    document = {
        "application": {
            "id": declared.id,
            "config": config,
            "lifecycle": declared.lifecycle,
            "setup": setup,
            **({"renamedFrom": declared.former} if declared.former else {}),
        },
        **({"topics": sink} if declared.sink else {}),
        **({"leftovers": leftovers} if leftovers else {}),
        "topology": [
            {"stream": {"topic": declared.source, "as": "source"}},
            *(
                {"stream": {"topic": topic, "as": f"other-{number}"}}
                for number, topic in enumerate(sorted(declared.reads))
            ),
            *(
                {"process": {"from": f"other-{number}", "name": f"reader-{number}"}}
                for number, _ in enumerate(sorted(declared.reads))
            ),
            *(
                {
                    "process": {
                        "from": "source",
                        "name": f"worker-{store}",
                        "stores": [{"name": store, "kind": "keyValue"}],
                    }
                }
                for store in sorted(declared.stores - {"a"})
            ),
            {"groupBy": {"from": "source", "key": "value.customer", "name": "by-customer"}},
            {"count": {"materialized": "a"}},
            *([{"toStream": None}, {"to": {"topic": declared.sink}}] if declared.sink else ()),
        ],
    }
    return dump_yaml(document)
