"""The files of a Kafka Streams application on the JVM whose internal topics are declared."""

from collections.abc import Callable, Mapping

from headwater.cli.new.project import Forge, filled
from headwater.model.versions import DEFAULT_VERSION
from headwater.toolchain.streams_jar import VERSION

KAFKA_STREAMS = str(DEFAULT_VERSION)
"""The version in the build; the exported document belongs to it."""
_NAME = f"headwater-streams-{VERSION}"
_LIBRARY = f"libs/io/headwater/headwater-streams/{VERSION}"
_POM = f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.headwater</groupId>
  <artifactId>headwater-streams</artifactId>
  <version>{VERSION}</version>
</project>
"""
_WORKFLOWS = {
    Forge.GITHUB: (".github/workflows/application.yml", "github.yml"),
    Forge.GITLAB: (".gitlab-ci.yml", "gitlab-ci.yml"),
}


def streams_project_files(
    name: str, forge: Forge, template: Callable[[str], str], jar: bytes
) -> Mapping[str, str | bytes]:
    """Return path → content.

    Args:
        name: the name of the Maven artifact.
        forge: where the repository is hosted.
        template: reads a file of `files/`.
        jar: Headwater's library. It is part of the project, as a repository of Maven: no public one has it.
    """
    kafka_streams = {"KAFKA_STREAMS_VERSION": KAFKA_STREAMS}
    versions = {**kafka_streams, "LIBRARY_VERSION": VERSION}
    project = {"PROJECT_NAME": name}
    workflow, source = _WORKFLOWS.get(forge, ("", ""))
    row = {
        f"WORKFLOW_ROW{'' if workflow else chr(10)}": f"| `{workflow}` | builds each change |"
        if workflow
        else ""
    }
    library = {"LIBRARY_FOLDER": _LIBRARY, "LIBRARY_NAME": _NAME}
    package = "java/com/example/orders"
    return {
        ".gitignore": template("streams/gitignore"),
        "README.md": filled(template("streams/README.md"), {**row, **project, **versions, **library}),
        "pom.xml": filled(template("streams/pom.xml"), {**project, **versions}),
        f"src/main/{package}/Orders.java": template("streams/Orders.java"),
        "src/main/resources/application.properties": template("streams/application.properties"),
        f"src/test/{package}/OrdersTest.java": template("streams/OrdersTest.java"),
        "topologies/orders.yaml": filled(template("streams/orders.yaml"), kafka_streams),
        f"{_LIBRARY}/{_NAME}.pom": _POM,
        f"{_LIBRARY}/{_NAME}.jar": jar,
        **({workflow: template(f"streams/{source}")} if workflow else {}),
    }
