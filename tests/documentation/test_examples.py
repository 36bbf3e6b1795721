"""Documents of the guides can be run; examples of `spark-submit` name the jars that Spark needs for Kafka."""

import re
from pathlib import Path

import pytest

from headwater.compiler import build_nodes
from headwater.spec import load_text
from headwater.toolchain import ensure_spark_jars
from headwater_spark.engine.program import problems_of

_ROOT = Path(__file__).parents[2]
_DOCUMENT = re.compile(
    r"^```yaml\n((?:# .*\n)?application:\n.*?^topology:\n.*?)^```\n", re.MULTILINE | re.DOTALL
)
_PAGES = ("README.md", "docs/documents.md", "docs/runtime.md", "docs/tutorial.md")


@pytest.mark.parametrize("page", _PAGES)
def test_documents_can_be_run(page: str) -> None:
    texts = _DOCUMENT.findall((_ROOT / page).read_text(encoding="utf-8"))
    assert texts
    for text in texts:
        loaded = load_text(text, "document.yaml")
        assert not loaded.problems
        (document,) = loaded.documents
        assert not problems_of(document, build_nodes(document))


PAGE = (Path(__file__).parents[2] / "docs" / "runtime.md").read_text(encoding="utf-8")


def test_each_example_passes_the_jars_unless_an_image_has_them() -> None:
    joined = PAGE.replace("\\\n", " ")
    examples = re.findall(r"^spark-submit .*$", joined, re.MULTILINE)
    assert len(examples) >= 3
    for example in examples:
        assert "--jars " in example or "spark.kubernetes.container.image=" in example, example


def test_the_jars_are_found_as_the_page_says() -> None:
    [program] = re.findall(r"^JARS=\$\(python -c '(.*)'\)$", PAGE, re.MULTILINE)
    printed: list[str] = []
    jars = (Path("connector.jar"), Path("kafka-clients.jar"))
    code = program.replace("from headwater.toolchain import ensure_spark_jars; ", "")
    assert code != program
    assert callable(ensure_spark_jars)
    exec(code, {"ensure_spark_jars": lambda: jars, "print": printed.append})  # noqa: S102 - of our own page
    assert printed == ["connector.jar,kafka-clients.jar"]
