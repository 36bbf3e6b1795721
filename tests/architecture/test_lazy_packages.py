"""Packages that import modules when a name is first used list all names, and refuse unknown names."""

import subprocess
import sys
from importlib import import_module
from operator import attrgetter

import pytest

PACKAGES = {
    "headwater.compiler": "headwater.compiler.dsl",
    "headwater.kafka": "confluent_kafka",
    "headwater.pulumi": "pulumi",
}
"""Package → what it imports only when a name is used."""


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_can_be_imported(package: str) -> None:
    module = import_module(package)
    assert [getattr(module, name).__name__ for name in module.__all__] == list(module.__all__)


@pytest.mark.parametrize(("package", "heavy"), PACKAGES.items())
def test_names_are_listed_before_they_are_used(package: str, heavy: str) -> None:
    program = f"import sys, {package}\nprint(*dir({package}))\nassert {heavy!r} not in sys.modules\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(import_module(package).__all__) <= set(done.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module '{package}' has no attribute 'unknown'$"):
        attrgetter("unknown")(import_module(package))
