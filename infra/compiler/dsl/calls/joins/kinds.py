"""What a call's type means to the processors."""

from collections.abc import Mapping

from infra.model.behaviors import JoinKind
from infra.model.operators import JoinType

KINDS: Mapping[JoinType, JoinKind] = {
    JoinType.INNER: "inner",
    JoinType.LEFT: "left",
    JoinType.OUTER: "outer",
}
