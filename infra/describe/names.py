"""PURE. Lists of names as `describe()` prints them: separated by a comma and a blank."""

from collections.abc import Collection


def names_in(text: str, known: Collection[str]) -> tuple[str, ...]:
    """The names in an arrow list. Where names hold commas (Processor API) the longest known one is taken."""
    if text == "none" and "none" not in known:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if all(part in known for part in parts):
        return tuple(parts)
    return _longest_known([part.strip(" ") for part in text.split(", ")], known)


def _longest_known(parts: list[str], known: Collection[str]) -> tuple[str, ...]:
    longest = max((name.count(", ") for name in known), default=0) + 1
    names: list[str] = []
    while parts:
        taken = next(
            (size for size in range(min(longest, len(parts)), 1, -1) if ", ".join(parts[:size]) in known), 1
        )
        names.append(", ".join(parts[:taken]))
        parts = parts[taken:]
    return tuple(names)
