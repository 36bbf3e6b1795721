"""Checks of what separates pull requests from production: workflows, and secrets in the state of a stack."""

import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.doctor.findings import Check, Finding, Section

_WORKFLOWS = Check(Section.STACK, "workflows")
_STATE = Check(Section.STACK, "secrets-in-state")
_OF_PULL_REQUESTS = re.compile(
    r"^\s*(?:on:.*|- *)?\bpull_request(?:_target)?\b|merge_request_event", re.MULTILINE
)
_RUNS_PULUMI = re.compile(r"\bpulumi (?:preview|up|stack|refresh)\b")
_COMPARES_TEXTS = re.compile(r"\bdiff\b.*\bshown\.md\b")
_NAME_ONLY = re.compile(r"\bheadwater(?:\[\w+\])? *(?:[=~]=|[<>]=?) *\d")
_SCRIPT_OF_A_SERVER = re.compile(r"\bcurl\b[^\n]*\| *(?:ba)?sh\b")
_CREATE_AGAIN = (
    "Create the workflows of this version (`headwater new` in an empty folder), and copy them. Then create "
    "the environment `records` for the default branch, and remove PULUMI_* from the environment `preview` "
    "(see docs/gitops.md)."
)


@attrs.frozen(kw_only=True)
class SeparationFacts:
    """`workflows`: file → text. `stored_secrets`: secrets of the provider in the state, not in the stack."""

    workflows: Mapping[str, str] = attrs.field(factory=dict)
    stored_secrets: Sequence[str] = ()
    has_state: bool = False


def separation_findings(facts: SeparationFacts) -> Iterator[Finding]:
    found = [finding for file, text in facts.workflows.items() for finding in _of_workflow(file, text)]
    yield from found
    if facts.workflows and not found:
        yield _WORKFLOWS.ok("no code of a pull request runs where secrets are")
    if facts.stored_secrets:
        yield _STATE.error(
            f"The state contains {', '.join(facts.stored_secrets)} of the run that has written it.",
            why="An earlier version stored the secrets of the environment in the state. Everyone who can "
            "read the backend and has the passphrase can read them, such as the author of a pull request "
            "whose preview had both.",
            fix="Run `pulumi up` with this version, which removes them. Then change these secrets: older "
            "states and backups of the backend still contain them.",
        )
    elif facts.has_state:
        yield _STATE.ok("no secret of the environment")


def _of_workflow(file: str, text: str) -> Iterator[Finding]:
    if _OF_PULL_REQUESTS.search(text) and _RUNS_PULUMI.search(_before_the_merge(text)):
        yield _WORKFLOWS.error(
            f"{file} runs Pulumi for pull requests.",
            why="Pulumi runs the program and the plugins of the pull request, with the backend and the "
            "passphrase of the stack. Its author can read every secret of the state, and replace the state.",
            fix=_CREATE_AGAIN + " Change all secrets that the state or the environment `preview` has had.",
        )
    if _COMPARES_TEXTS.search(text):
        yield _WORKFLOWS.error(
            f"{file} compares the texts of two plans before `pulumi up`.",
            why="The texts are shortened: of a long plan, changes after the approval are not noticed.",
            fix=_CREATE_AGAIN,
        )
    if _NAME_ONLY.search(text):
        yield _WORKFLOWS.error(
            f"{file} installs Headwater by its name.",
            why="The name is not registered in the public package index. Whoever registers it gets the "
            "secrets.",
            fix="Set HEADWATER to the URL of the wheel with its hash, and copy this version's workflows.",
        )
    if _SCRIPT_OF_A_SERVER.search(text):
        yield _WORKFLOWS.warning(
            f"{file} runs a script that it downloads, without a hash.",
            why="Whoever controls the server or the connection gets the secrets of the job.",
            fix=_CREATE_AGAIN,
        )


def _before_the_merge(text: str) -> str:
    """Return the jobs of a file that pull requests start; on GitLab, a file also has other jobs."""
    if "merge_request_event" not in text:
        return text
    jobs = re.split(r"^(?=[\w.:-]+:\s*$)", text, flags=re.MULTILINE)
    return "".join(job for job in jobs if "merge_request_event" in job)
