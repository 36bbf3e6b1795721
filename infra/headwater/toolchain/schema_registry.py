"""Apicurio Registry, which serves the API of Confluent's schema registry; tests download it on first use.

Some mirrors do not have the parents of its POM, so it is downloaded alone, which `MavenJars` cannot do.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.broker.readiness import HOST, free_ports, until
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError, run_logged

REGISTRY_VERSION = "3.0.9"
_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{REGISTRY_VERSION}:tar.gz:all"
_GET = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"
_REPOSITORY = "repository"
_START_SECONDS = 240
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def ensure_schema_registry() -> Path:
    """Return the registry's runnable jar, downloaded on first use; raises `ToolchainError`."""
    cache = Cache()

    def fetch(folder: Path, shown: Progress) -> None:
        maven = machine.require([machine.MAVEN])[machine.MAVEN]
        with shown.step(
            f"Apicurio Registry {REGISTRY_VERSION}: downloading with Maven", expected="a minute"
        ) as show:
            run_logged(
                [
                    *(maven, _GET, f"-Dartifact={_ARTIFACT}", "-Dtransitive=false"),
                    *(f"-Dmaven.repo.local={folder / _REPOSITORY}", "--batch-mode"),
                    *("--no-transfer-progress", "-Dstyle.color=never"),
                ],
                log=cache.root / "logs" / "schema-registry.log",
                environment=os.environ,
                show=show,
                failure="Maven could not download Apicurio Registry",
            )
            _unpack(folder)

    entry = f"schema-registry-{REGISTRY_VERSION}-{fingerprint(_SHA256)}"
    folder = cache.ensure(entry, fetch, Progress())
    return next(folder.glob("*-runner.jar"))


def _unpack(folder: Path) -> None:
    """Unpack the archive: in a local repository of its own it is the only one."""
    (archive,) = (folder / _REPOSITORY).rglob("*-all.tar.gz")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
        raise ToolchainError(
            f"Maven downloaded an {archive.name} that differs from the locked one.\n"
            "  Check the mirrors in ~/.m2/settings.xml. With a new version, update its checksum."
        )
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    shutil.rmtree(folder / _REPOSITORY)


@contextmanager
def running_schema_registry(log: Path) -> Iterator[str]:
    """Yield the URL of the API of an in-memory registry, which stops with the block."""
    java = machine.require([machine.JAVA])[machine.JAVA]
    jar = ensure_schema_registry()
    (port,) = free_ports(1)
    address = (f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={port}")
    url = f"http://{HOST}:{port}/apis/ccompat/v7"
    with log.open("wb") as output:
        process = subprocess.Popen([java, *_OPTIONS, *address, "-jar", jar], stdout=output, stderr=output)
    try:
        if not until(lambda: process.poll() is not None or _answers(url), _START_SECONDS) or process.poll():
            raise ToolchainError(f"The schema registry did not start. Its log: {log}")
        yield url
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5):  # noqa: S310 - the registry started above
            return True
    except OSError:  # HTTPError is one
        return False
