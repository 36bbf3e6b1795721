"""Archives of the classes that a Java program loads (class data sharing): it starts in half the time."""

from contextlib import suppress
from pathlib import Path

_WITHOUT_WARNINGS = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def reading(archive: Path) -> tuple[str, ...]:
    """Return the options of Java that use an archive. One that does not fit is ignored, without a warning."""
    return (f"-XX:SharedArchiveFile={archive}", *_WITHOUT_WARNINGS)


def recording(archive: Path) -> tuple[str, ...]:
    """Return the options of Java that write an archive when the program ends."""
    return (f"-XX:ArchiveClassesAtExit={archive}", *_WITHOUT_WARNINGS)


def build_of(java: Path) -> tuple[str, str]:
    """Return what identifies a build of Java: an archive is valid for one build only."""
    release = ""
    with suppress(OSError):
        release = (java.resolve().parents[1] / "release").read_text(encoding="utf-8")
    return str(java.resolve()), release
