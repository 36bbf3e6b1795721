"""Who is to get which rights."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs

from infra.model.acls import ANY_NAME, Pattern, Right
from infra.planner.acls import Need


@attrs.frozen
class Grants:
    """What an application (`holder` is its id) or Headwater needs for `purpose`; `principals` may be open."""

    holder: str
    purpose: str
    principals: tuple[str, ...]
    hosts: tuple[str, ...]
    needs: tuple[Need, ...]

    @property
    def by_resource(self) -> Iterator[Sequence[Need]]:
        """Yield the needs of one resource after the other."""
        for _, group in groupby(self.needs, key=lambda need: _resource(need.right)):
            yield tuple(group)


def shown_name(right: Right) -> str:
    """Return the name, with a star where it is a beginning."""
    return right.name + (ANY_NAME if right.pattern is Pattern.PREFIXED else "")


def _resource(right: Right) -> tuple[str, str, str]:
    return right.kind, right.name, right.pattern
