"""What Kafka Streams refuses in the config of an application: all of it, as problems."""

import attrs

from headwater.model.problems import Problem, ProblemCode, shorten_text

_NOT_STARTED = "{} throws {}: the application does not start."


def name_exception(exception: str, thrower: str = "Kafka Streams") -> str:
    """Return the sentence about the consequence."""
    return _NOT_STARTED.format(thrower, f"{'an' if exception[0] in 'AEIOU' else 'a'} {exception}")


@attrs.frozen(kw_only=True)
class Refusal:
    """A reason why the application does not start; `key` is the config to change."""

    key: str
    summary: str
    expected: str
    found: str
    fix: str
    why: str = name_exception("ConfigException")

    @classmethod
    def of_value(
        cls,
        key: str,
        text: str,
        expected: str,
        *,
        hint: str = "",
        why: str = name_exception("ConfigException"),
    ) -> "Refusal":
        """Return the refusal of a value; `hint` is the value that is probably meant."""
        shown = f"`{shorten_text(text)}`"
        return cls(
            key=key,
            summary=f"`{shorten_text(key)}` cannot be {shown if text else 'empty'}.",
            expected=expected,
            found=shown if text else "empty text",
            fix=f"Did you mean `{hint}`?" if hint else f"Set `{key}` to {expected}, or remove it.",
            why=why,
        )

    def to_problem(self) -> Problem:
        """Return the problem without application and location."""
        return Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=self.summary,
            expected=self.expected,
            found=self.found,
            why=self.why,
            fix=self.fix,
        )
