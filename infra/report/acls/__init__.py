"""Rights in words, as JSON, and as the commands that grant them."""

from infra.report.acls.grants import Grants

__all__ = ["Grants"]
