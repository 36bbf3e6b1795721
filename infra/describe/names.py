"""PURE. Lists of names as `describe()` prints them: separated by a comma and a blank."""

from collections.abc import Iterable


class Names:
    """The names of the nodes of one sub-topology, to tell where one ends in a list."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known = frozenset(names)
        self._longest = max((name.count(", ") for name in self._known), default=0) + 1

    def in_list(self, text: str) -> tuple[str, ...]:
        """The names in an arrow list. Where names hold commas (Processor API) the longest known is taken."""
        if text == "none":
            return ()
        if self._longest == 1:
            return tuple(part.strip() for part in text.split(","))
        parts = text.split(", ")
        names: list[str] = []
        at = 0
        while at < len(parts):
            sizes = range(min(self._longest, len(parts) - at), 1, -1)
            taken = next((size for size in sizes if ", ".join(parts[at : at + size]) in self._known), 1)
            names.append(", ".join(parts[at : at + taken]).strip())
            at += taken
        return tuple(names)
