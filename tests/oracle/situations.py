"""Inputs of the comparison: a document, and starts of its application on clusters with different counts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from tests.oracle.comparison import differences
from tests.oracle.kafka_streams import PROTOCOLS, KafkaStreams, Protocol, Run
from tests.oracle.random_topologies.generator import Generator
from tests.oracle.random_topologies.stores import Choices
from tests.yaml_text import load_yaml

_PERCENT_BAD = 15
_PERCENT_SIMILAR = 30
_PERCENT_RARE = 60
_APPLICATION_IDS = ("app", "a", "billing-2")


@attrs.frozen
class Situation:
    """A document and clusters (topic → count), compared for several application ids and protocols."""

    document: Mapping[str, Any]
    clusters: Sequence[Mapping[str, int]] = ({},)

    def runs(self, protocols: Sequence[Protocol] = PROTOCOLS) -> tuple[Run, ...]:
        own = str(self.document["application"]["id"])
        ids = dict.fromkeys((own, *_APPLICATION_IDS))
        return tuple(
            Run(application_id, cluster, protocol)
            for cluster in self.clusters
            for application_id in ids
            for protocol in protocols
        )

    def differences(self, kafka_streams: KafkaStreams) -> list[str]:
        """Return the differences between Headwater and the real one, of the version of `kafka_streams`."""
        runs = self.runs(kafka_streams.protocols)
        answer = kafka_streams.ask(self.document, runs, self.clusters[0])
        assert answer.refusal is None or answer.refusal.stage != "request", answer.refusal
        application = {**self.document["application"], "kafkaStreams": kafka_streams.version}
        return list(differences({**self.document, "application": application}, answer, runs))

    def text(self) -> str:
        """Return the situation in the format of `regressions/`."""
        content = {"document": self.document, "clusters": [dict(cluster) for cluster in self.clusters]}
        return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110)


def random_situation(choices: Choices, *, rare: bool = False) -> Situation:
    """Return a random situation; with `rare` also with rare options and combinations."""
    bad, focus = choices.chance(_PERCENT_BAD), choices.number(100)
    similar = choices.chance(_PERCENT_SIMILAR)
    generator = Generator(
        choices,
        bad=bad,
        similar=similar,
        rare=rare and choices.chance(_PERCENT_RARE),
        only_tables=focus >= 92,
        only_repartitions=80 <= focus < 92,
        only_counts=rare and 74 <= focus < 80,
    )
    # The time in which Kafka Streams describes nested joins doubles with each join, so their number is small.
    size = 1 + choices.number(40 if choices.chance(25) and not generator.only_tables else 14)
    document = generator.document(size)
    return Situation(document, (generator.partitions(), generator.partitions(missing_percent=3)))


def stored_situations(folder: Path) -> Iterable[tuple[str, Situation]]:
    """Return (file name without suffix, situation) of the files in `folder`."""
    for file in sorted(folder.glob("*.yaml")):
        content = load_yaml(file.read_text(encoding="utf-8"))
        yield file.stem, Situation(content["document"], content.get("clusters") or ({},))
