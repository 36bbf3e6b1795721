"""Write topology documents as YAML that `yaml_reader` reads as the same values."""

from collections.abc import Mapping
from typing import Any

import yaml

from headwater.spec.scalars import plain_scalar


class DocumentDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes neither anchors nor aliases, which documents cannot have; uses libyaml if available."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote a text that would be read as a number: YAML 1.2 has more numbers than PyYAML, such as 1e3."""
    style = None if isinstance(plain_scalar(text), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


DocumentDumper.add_representer(str, _represent_text)


def document_yaml(content: Mapping[str, Any], dumper: type[DocumentDumper] = DocumentDumper) -> str:
    """Return the content of a document as YAML; a subclass of the dumper may write some values otherwise."""
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n")  # libyaml's end after a block: users append sections
