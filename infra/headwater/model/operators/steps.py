"""One call of a document. An operator may contain calls: those of a branch."""

from typing import TYPE_CHECKING

import attrs

from headwater.model.problems import Location

if TYPE_CHECKING:
    from headwater.model.operators import Operator


@attrs.frozen
class Step:
    """One call: `operator` on the handle `input`; its result is named `alias`.

    Without `input` the call is made on the result of the preceding step.
    """

    operator: "Operator"
    at: Location
    input: str | None = None
    alias: str | None = None
