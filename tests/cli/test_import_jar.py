"""`headwater import --jar`: documents from the code of applications, also of badly behaved ones."""

import re
import shlex
import zipfile
from pathlib import Path

import attrs
import pytest

from headwater.cli.console import ExitCode
from headwater.model.nodes import ChangelogKind
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.streams_library import ensure_streams_library
from tests.cli.conftest import Headwater
from tests.oracle.kafka_streams import built_program
from tests.quick_java import QUICK_JAVA

pytestmark = pytest.mark.oracle
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@attrs.frozen
class _Application:
    """The classes of the application, and the class path of its dependencies."""

    classes: Path
    libraries: str


@pytest.fixture(scope="module")
def application() -> _Application:
    ensure_streams_library()  # so that no command reports the build
    _, folder = built_program()
    return _Application(folder / "classes", str(folder / "jars" / "*"))


@pytest.fixture(autouse=True)
def quick_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_JAVA))


@pytest.fixture
def jar(application: _Application, tmp_path: Path) -> Path:
    return _jar(application.classes, tmp_path / "orders.jar")


def _jar(classes: Path, jar: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted((classes / "com" / "acme").glob("*.class")):
            archive.write(file, f"{prefix}{file.relative_to(classes)}")
    return jar


def _document(file: Path) -> TopologyDocument:
    loaded = load_text(file.read_text(encoding="utf-8"), str(file))
    assert not loaded.problems
    return loaded.documents[0]


@pytest.mark.parametrize("member", ["topology", "SUPPLIER", "fill", "bean", "chatty"])
def test_ways_to_name_a_topology(
    headwater: Headwater, application: _Application, jar: Path, tmp_path: Path, member: str
) -> None:
    done = headwater(
        *("import", "--jar", jar, "--classpath", application.libraries, "--application-id", "orders"),
        *("--topology", f"com.acme.Orders::{member}", "-o", "orders.yaml"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.DONE, "", "")
    document = _document(tmp_path / "orders.yaml")
    assert document.exported is not None
    nodes = document.exported.nodes
    assert {topic.name: topic.partitions for topic in nodes.repartition_topics} == {
        "spread-repartition": 6,
        "by-customer-repartition": None,
    }
    (counts,) = nodes.stores
    assert (counts.kind, counts.base_ms) == (ChangelogKind.WINDOWED, 3_900_000)


def test_properties_reach_the_code_and_the_document(
    headwater: Headwater, application: _Application, jar: Path, tmp_path: Path
) -> None:
    (tmp_path / "app.properties").write_text(
        "application.id=orders\ntopology.optimization = all\nreplication.factor: 3\n"
        'sasl.jaas.config=module required password="secret";\nbootstrap.servers=broker:9092\n',
        encoding="utf-8",
    )
    done = headwater(
        *("import", "--jar", jar, "--classpath", application.libraries, "--properties", "app.properties"),
        *("--config", "replication.factor=2", "--topology", "com.acme.Orders::OF_PROPERTIES"),
    )
    assert done.returncode == ExitCode.DONE
    (document,) = load_text(done.stdout, "orders.yaml").documents
    assert document.application.config == {"replication.factor": "2", "topology.optimization": "all"}
    assert document.exported is not None
    stores = {store.name: store.changelog_topic for store in document.exported.nodes.stores}
    assert stores == {"counts": None, "customers": "customers"}
    assert "secret" not in done.stdout


def test_keys_of_a_framework_are_reported(
    headwater: Headwater, application: _Application, jar: Path, tmp_path: Path
) -> None:
    (tmp_path / "application.properties").write_text(
        "application.id=orders\nspring.kafka.properties.sasl.jaas.config=secret\n"
        "spring.kafka.streams.replication-factor=2\nspring.kafka.streams.auto-startup=false\n",
        encoding="utf-8",
    )
    command = (
        *("import", "--jar", jar, "--classpath", application.libraries),
        *("--properties", "application.properties", "--topology", "com.acme.Orders::OF_PROPERTIES"),
    )
    done = headwater(*command)
    assert done.returncode == ExitCode.DONE
    assert "application.properties has keys of a framework" in done.stderr
    assert (
        "`spring.kafka.properties.sasl.jaas.config`, `spring.kafka.streams.replication-factor`"
        in " ".join(done.stderr.split())
    )
    assert "secret" not in done.stderr
    assert "--config replication.factor=VALUE" in done.stderr

    (tmp_path / "connection.properties").write_text(
        "application.id=orders\nspring.kafka.ssl.key-password=secret\n", encoding="utf-8"
    )
    other = {"application.properties": "connection.properties"}
    of_connection = headwater(*(other.get(str(part), part) for part in command))
    assert (of_connection.returncode, of_connection.stderr) == (ExitCode.DONE, "")

    followed = headwater(*command, "--config", "replication.factor=2")
    assert (followed.returncode, followed.stderr) == (ExitCode.DONE, "")
    (document,) = load_text(followed.stdout, "orders.yaml").documents
    assert document.application.config == {"replication.factor": "2"}


def test_sections_of_the_user_are_kept(
    headwater: Headwater, application: _Application, jar: Path, tmp_path: Path
) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(
        "# Our orders.\napplication: {id: orders}\nobserved:\n  topics: {}\n  unknown: [sources]\n\n"
        "# They may do this.\nacls:\n  principals: [User:orders]\n",
        encoding="utf-8",
    )
    for _ in range(2):
        done = headwater(
            *("import", "--jar", jar, "--classpath", application.libraries, "--application-id", "orders"),
            *("--topology", "com.acme.Orders::topology", "-o", file),
        )
        assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
        text = file.read_text(encoding="utf-8")
        assert text.startswith("# Our orders.\napplication: {id: orders}\nexported:\n")
        assert text.endswith("\n\n# They may do this.\nacls:\n  principals: [User:orders]\n")
        assert _document(file).application.acls is not None


def test_command_of_the_documentation(
    headwater: Headwater, application: _Application, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "exported-documents.md").read_text(encoding="utf-8")
    (command,) = (block for block in _BLOCK.findall(page) if "import --jar" in block)
    _jar(application.classes, tmp_path / "app.jar")
    (tmp_path / "libs").symlink_to(Path(application.libraries).parent)
    (tmp_path / "app.properties").write_text("application.id=orders\n", encoding="utf-8")
    (tmp_path / "topologies").mkdir()
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    assert program == "headwater"
    done = headwater(*arguments)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert _document(tmp_path / "topologies" / "orders.yaml").application.id == "orders"


def test_jar_of_spring_boot(headwater: Headwater, application: _Application, tmp_path: Path) -> None:
    boot = _jar(application.classes, tmp_path / "boot.jar", "BOOT-INF/classes/")
    with zipfile.ZipFile(boot, "a") as archive:
        for library in Path(application.libraries).parent.glob("*.jar"):
            archive.write(library, f"BOOT-INF/lib/{library.name}")
    done = headwater(
        *("import", "--jar", boot, "--topology", "com.acme.Orders::topology", "--application-id", "orders")
    )
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert load_text(done.stdout, "orders.yaml").documents


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("com.acme.Orders::exits", "Java ended with exit code 3 before com.acme.Orders::exits returned."),
        ("com.acme.Orders::hangs", "com.acme.Orders::hangs has not returned within 3 s. Java was killed."),
        ("com.acme.Orders::fails", "java.lang.IllegalStateException: no registry"),
        ("com.acme.Orders::text", "com.acme.Orders::text does not return a topology."),
        ("com.acme.Orders::missing", "`com.acme.Orders::topology`"),
        ("com.acme.Missing::topology", "Class com.acme.Missing is not on the class path."),
        ("com.acme.Orders$Wired::topology", "it has no constructor without parameters"),
    ],
)
def test_code_that_builds_no_topology(
    headwater: Headwater, application: _Application, jar: Path, member: str, message: str
) -> None:
    done = headwater(
        *("import", "--jar", jar, "--classpath", application.libraries, "--application-id", "orders"),
        *("--topology", member, "--timeout", "3" if member.endswith("hangs") else "60", "-o", "orders.yaml"),
    )
    assert done.returncode == ExitCode.PROBLEMS
    assert "TopologyNotExported" in done.stderr
    assert message in " ".join(done.stderr.split())
    assert not jar.with_name("orders.yaml").exists()


def test_what_the_machine_or_the_arguments_lack(
    headwater: Headwater, application: _Application, jar: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.jar").write_bytes(b"no archive")
    topology = ("--topology", "com.acme.Orders::topology")
    libraries = ("--classpath", application.libraries)
    for arguments, message in (
        (("--jar", jar, *libraries, *topology), "The properties have no application.id"),
        (("--jar", jar, *topology), "Kafka Streams is not on the class path."),
        (("--jar", tmp_path / "broken.jar", *topology), "broken.jar cannot be read."),
    ):
        done = headwater("import", *arguments)
        assert done.returncode == ExitCode.PROBLEMS
        assert message in " ".join(done.stderr.split())
    done = headwater("import", "--jar", jar, "--topology", "topology")
    assert "CLASS::NAME" in done.stderr


def test_other_application_in_the_file(
    headwater: Headwater, application: _Application, jar: Path, tmp_path: Path
) -> None:
    request = ("import", "--jar", jar, "--classpath", application.libraries, "-o", "orders.yaml")
    target = ("--topology", "com.acme.Orders::topology", "--application-id")
    assert headwater(*request, *target, "orders").returncode == ExitCode.DONE
    before = (tmp_path / "orders.yaml").read_bytes()
    done = headwater(*request, *target, "billing")
    assert done.returncode == ExitCode.PROBLEMS
    assert "found orders.yaml is the document of orders" in " ".join(done.stderr.split())
    assert (tmp_path / "orders.yaml").read_bytes() == before
