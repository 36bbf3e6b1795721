"""Archive the classes that a broker loads (class data sharing): later brokers start in half the time."""

import tempfile
from pathlib import Path

import attrs

from headwater.toolchain.broker.process import Broker
from headwater.toolchain.cache import Cache
from headwater.toolchain.kafka import CLASS_DATA_FILE, KafkaDistribution, class_data_entry
from headwater.toolchain.progress import Progress


def ensure_class_data(distribution: KafkaDistribution, cache: Cache, progress: Progress) -> KafkaDistribution:
    """Return the distribution with an archive, recorded from a broker on first use."""

    def record(folder: Path, shown: Progress) -> None:
        with shown.step("Kafka: archiving its classes", expected="15 seconds"):
            archive = folder / CLASS_DATA_FILE
            recording = attrs.evolve(distribution, class_data=archive, is_recording=True)
            with tempfile.TemporaryDirectory() as data, Broker(recording, Path(data)):
                pass  # Java writes the archive when the broker ends

    folder = cache.ensure(class_data_entry(distribution.java, distribution.version), record, progress)
    return attrs.evolve(distribution, class_data=folder / CLASS_DATA_FILE)
