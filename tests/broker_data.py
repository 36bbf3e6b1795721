"""The data of new brokers: formatted once on a machine, then copied. Formatting takes a JVM each time."""

import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import SaslUser, Settings, launch
from headwater.toolchain.broker.launch import format_storage, random_cluster_id, write_files
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress

_UNSTABLE = "unstable."


def copy_data(
    distribution: KafkaDistribution,
    folder: Path,
    settings: Settings,
    *,
    node: int = 1,
    cluster_id: str | None = None,
) -> None:
    """Write formatted data for a broker with these settings to `folder`.

    It has a cluster id of its own, if none is given. Each data folder of a cluster has another id.
    """
    # Formatting stores the passwords of users, and which features a new cluster has.
    features = tuple(item for item in settings.overrides.items() if item[0].startswith(_UNSTABLE))
    shutil.copytree(
        _formatted(distribution, settings.sasl_users, features), folder / "data", dirs_exist_ok=True
    )
    file = folder / "data" / "meta.properties"
    text = file.read_text()
    ids = {
        "cluster.id": cluster_id or random_cluster_id(),
        "directory.id": random_cluster_id(),
        "node.id": str(node),
    }
    for key, value in ids.items():
        text, replaced = re.subn(f"^{key}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
        assert replaced == 1, text
    file.write_text(text)


def _formatted(
    distribution: KafkaDistribution, users: tuple[SaslUser, ...], features: tuple[tuple[str, str], ...]
) -> Path:
    """Return formatted data from the cache folder: the users of tests are the same in each run."""

    def format_data(data: Path, _: Progress) -> None:
        with TemporaryDirectory() as name:
            folder = Path(name)
            settings = Settings(sasl_users=users, overrides=dict(features))
            ports = {name: number for number, name in enumerate((*settings.protocols, "CONTROLLER"), start=1)}
            format_storage(distribution, write_files(settings, ports, folder), random_cluster_id(), users)
            shutil.copytree(folder / "data", data, dirs_exist_ok=True)

    words = (word for user in users for word in (user.name, user.password))
    of_features = (word for item in features for word in item)
    code = (Path(file).read_bytes() for file in (launch.__file__, __file__))  # the properties and arguments
    contents = fingerprint(str(distribution.jars), *code, *words, "features", *of_features)
    return Cache().ensure(f"broker-data-{distribution.version}-{contents}", format_data, Progress())
