"""The data of new brokers: formatted once in a process, then copied. Formatting takes a JVM each time."""

import atexit
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import SaslUser, Settings
from headwater.toolchain.broker.launch import format_storage, random_cluster_id, write_files

_UNSTABLE = "unstable."


def copy_data(distribution: KafkaDistribution, folder: Path, settings: Settings) -> None:
    """Write formatted data for a broker with these settings to `folder`, with a cluster id of its own."""
    # Formatting stores the passwords of users, and which features a new cluster has.
    features = tuple(item for item in settings.overrides.items() if item[0].startswith(_UNSTABLE))
    shutil.copytree(
        _formatted(distribution, settings.sasl_users, features), folder / "data", dirs_exist_ok=True
    )
    file = folder / "data" / "meta.properties"
    text, replaced = re.subn(
        "^cluster.id=.*$", f"cluster.id={random_cluster_id()}", file.read_text(), flags=re.MULTILINE
    )
    assert replaced == 1, text
    file.write_text(text)


@cache
def _formatted(
    distribution: KafkaDistribution, users: tuple[SaslUser, ...], features: tuple[tuple[str, str], ...]
) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="headwater-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = Settings(sasl_users=users, overrides=dict(features))
    ports = {name: number for number, name in enumerate((*settings.protocols, "CONTROLLER"), start=1)}
    format_storage(distribution, write_files(settings, ports, folder), random_cluster_id(), users)
    return folder / "data"
