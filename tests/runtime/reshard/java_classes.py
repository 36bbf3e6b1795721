"""The partitioners in `java/`, compiled for the version of Kafka that the tests use."""

import subprocess
from pathlib import Path

from headwater_spark.commands.console import JavaCode
from tests.oracle.kafka_streams import OF_THE_BROKER, built_program
from tests.quick_java import QUICK_JAVAC

_SOURCE = Path(__file__).parent / "java"


def compiled_code(folder: Path) -> JavaCode:
    """Compile the classes to a folder, and return them with the jars of Kafka Streams."""
    _, program = built_program(OF_THE_BROKER)
    jars = str(program / "jars" / "*")
    quick = (*QUICK_JAVAC, "-proc:none", "-nowarn", "-XDsuppressNotes")
    sources = sorted(map(str, _SOURCE.rglob("*.java")))
    subprocess.run(["javac", *quick, "-cp", jars, "-d", str(folder), *sources], check=True)
    return JavaCode(jar=folder, class_path=[jars])
