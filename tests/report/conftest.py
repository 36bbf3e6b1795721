"""Golden files: `UPDATE_GOLDEN=1 pytest tests/report` rewrites them; read the difference, then commit."""

from tests.spec.conftest import golden

__all__ = ["golden"]
