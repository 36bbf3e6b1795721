"""Versions of Kafka Streams that an application may run."""

import re

import attrs

_LOGGED = re.compile(r"Kafka Streams version: (\d{1,3}\.\d{1,3}\.\d{1,3})(-c(?:cs|e)\b)?", re.ASCII)
_CONFLUENT = {
    **{f"5.{minor}": f"2.{minor}" for minor in range(6)},
    **{f"6.{minor}": f"2.{minor + 6}" for minor in range(3)},
    **{f"7.{minor}": f"3.{minor}" for minor in range(10)},
    **{f"8.{minor}": f"4.{minor}" for minor in range(10)},
}
"""Releases of Confluent Platform, whose libraries log their own version, and of Kafka."""
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
        return self.release if self in SUPPORTED or self in OLDER else str(self)

    @property
    def is_supported(self) -> bool:
        """Return whether the compiler was compared with this release."""
        return self.release in _LATEST

    @property
    def is_newer(self) -> bool:
        """Return whether the release is later than all supported ones."""
        return (self.major, self.minor) > (SUPPORTED[-1].major, SUPPORTED[-1].minor)

    def is_later_release_than(self, other: "KafkaStreamsVersion") -> bool:
        """Return whether this release is later; patches are not compared."""
        return (self.major, self.minor) > (other.major, other.minor)

    def __str__(self) -> str:
        return f"{self.release}.{self.patch}"


SUPPORTED = tuple(
    KafkaStreamsVersion(*numbers)
    for numbers in ((3, 7, 2), (3, 8, 1), (3, 9, 2), (4, 0, 2), (4, 1, 2), (4, 2, 2), (4, 3, 1), (4, 4, 0))
)
"""The latest patch of each supported release. Tests compare the compiler with each of them."""

OLDER = tuple(
    KafkaStreamsVersion(*numbers)
    for numbers in (
        *((2, 5, 1), (2, 6, 3), (2, 7, 2), (2, 8, 2), (3, 0, 2), (3, 1, 2)),
        *((3, 2, 3), (3, 3, 2), (3, 4, 1), (3, 5, 2), (3, 6, 2)),
    )
)
"""The latest patch of each earlier release whose texts and topics are imported.

Tests compare names, settings and co-partitioning of some topologies with each of them; documents with calls
need a supported version.
"""

_LATEST = {version.release: version for version in SUPPORTED}
_LATEST_OF_ALL = {version.release: version for version in (*OLDER, *SUPPORTED)}
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


def read_any_version(text: str) -> KafkaStreamsVersion | None:
    """Return the version that `text` names, None if it is no version, or earlier than the oldest known one.

    A later patch of a known release is its latest known patch. A release later than all known ones is
    returned as it is.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    named = KafkaStreamsVersion(int(found[1]), int(found[2]), int(found[3] or 0))
    latest = _LATEST_OF_ALL.get(named.release)
    if latest is None:
        return named if named.is_newer and named.major <= SUPPORTED[-1].major + 1 else None
    return latest if found[3] is None else min(named, latest)


def logged_version(log: str) -> str | None:
    """Return the version of the library that a log of the application names last, None if it names none.

    A library of Confluent Platform (`7.6.0-ccs`) has the release of Kafka that it contains, without a patch.
    """
    found = _LOGGED.findall(log)
    if not found:
        return None
    version: str = found[-1][0]
    vendor: str = found[-1][1]
    return _CONFLUENT.get(version.rpartition(".")[0], version) if vendor else version


def is_older_than_known(text: str) -> bool:
    """Return whether `text` names a version before the oldest release whose texts are imported."""
    found = _TEXT.fullmatch(text)
    oldest = OLDER[0]
    return found is not None and (int(found[1]), int(found[2])) < (oldest.major, oldest.minor)
