"""YAML with libyaml, if it is there: PyYAML's own reader and writer take five times as long."""

from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load_yaml(text: str) -> Any:  # noqa: ANN401 - any value
    """Return what `yaml.safe_load` returns."""
    return yaml.load(text, _Loader)  # noqa: S506 - a safe loader


def dump_yaml(data: object) -> str:
    """Return YAML of the data, with the keys in their order."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False))
