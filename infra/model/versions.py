"""Versions of Kafka Streams that an application may run."""

import re

import attrs

_LOGGED = re.compile(r"Kafka Streams version: (\d{1,3}\.\d{1,3}\.\d{1,3})", re.ASCII)
_TEXT = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", re.ASCII)


@attrs.frozen(order=True)
class KafkaStreamsVersion:
    """A version of the library, such as 4.1.1; versions are ordered."""

    major: int
    minor: int
    patch: int

    @property
    def release(self) -> str:
        """Return the version without its patch level: `4.1`."""
        return f"{self.major}.{self.minor}"

    @property
    def written(self) -> str:
        """Return the version as a document names it: only the release if it is the latest known patch."""
        return self.release if self in SUPPORTED else str(self)

    def __str__(self) -> str:
        return f"{self.release}.{self.patch}"


SUPPORTED = tuple(
    KafkaStreamsVersion(*numbers)
    for numbers in ((3, 7, 2), (3, 8, 1), (3, 9, 2), (4, 0, 2), (4, 1, 2), (4, 2, 2), (4, 3, 1))
)
"""The latest patch of each supported release. Tests compare the compiler with each of them."""

_LATEST = {version.release: version for version in SUPPORTED}
SUPPORTED_RELEASES = tuple(_LATEST)
DEFAULT_VERSION = SUPPORTED[-1]
"""The version of a document that names none, unless the application was set up with another one."""
BEFORE_VERSIONS = _LATEST["4.1"]
"""The version of a setup record that contains none: earlier releases of Headwater knew only this one."""


def read_version(text: str) -> KafkaStreamsVersion | None:
    """Return the version that `text` names, None if it is not supported.

    A release without a patch level is its latest patch. An earlier patch of a supported release is supported.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    major, minor, patch = found.groups()
    latest = _LATEST.get(f"{int(major)}.{int(minor)}")
    if latest is None or patch is None:
        return latest
    return attrs.evolve(latest, patch=int(patch)) if int(patch) <= latest.patch else None


def release_start(release: str) -> KafkaStreamsVersion:
    """Return the first version of a release such as `4.1`."""
    major, minor = map(int, release.split("."))
    return KafkaStreamsVersion(major, minor, 0)


def logged_version(log: str) -> str | None:
    """Return the version of the library that a log of the application names last, None if it names none."""
    found = _LOGGED.findall(log)
    return found[-1] if found else None


def known_version(text: str) -> KafkaStreamsVersion | None:
    """Return the nearest supported version: of a later patch than is known, the latest known one."""
    return read_version(text) or read_version(text.rpartition(".")[0])


def is_older_than_supported(text: str) -> bool:
    """Return whether `text` names a version before the oldest supported release."""
    found = _TEXT.fullmatch(text)
    oldest = SUPPORTED[0]
    return found is not None and (int(found[1]), int(found[2])) < (oldest.major, oldest.minor)
