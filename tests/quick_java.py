"""Options for Java programs that tests start: most of them end after a second or two.

By default, Java compiles what such a program executes twice, the second time for speed that nothing uses, and
collects its garbage with several threads. That takes a third to a half of the CPU time of the program.

Java ignores `TMPDIR`, and a program that a test kills leaves its temporary files. So they are in one folder.
"""

import atexit
import os
import shutil
import tempfile

JAVA_FILES = "HEADWATER_TESTS_JAVA_FILES"


def _temporary_folder() -> str:
    """Return the folder that the variable names. The process that creates it deletes it when it ends."""
    if JAVA_FILES not in os.environ:
        os.environ[JAVA_FILES] = tempfile.mkdtemp(prefix="headwater-java-")
        atexit.register(_delete_folder, os.environ[JAVA_FILES], os.getpid())
    return os.environ[JAVA_FILES]


def _delete_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not a fork
        shutil.rmtree(folder, ignore_errors=True)


QUICK_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={_temporary_folder()}")
# With verification, a quarter of the CPU time of a short Kafka Streams application is spent on it.
# Drivers of Spark need no such option: their classes are archived.
_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
QUICK_PROGRAM = (*QUICK_JAVA, *_UNVERIFIED)
QUICK_JAVAC = tuple(f"-J{option}" for option in QUICK_PROGRAM)
QUICK_MAVEN = " ".join(QUICK_PROGRAM)
"""The variable `MAVEN_OPTS`. A build with Maven then takes half of its CPU time."""
