"""The comment on a pull request: what a preview does to which topics, and what had drifted before.

Belongs here: reading what `pulumi preview --json` and `headwater drift --format json` print, the Markdown.
"""

from infra.report.plan_comment.comment import plan_comment
from infra.report.plan_comment.preview import Preview, read_preview
from infra.report.plan_comment.reported_drift import ReportedDrift, read_drift

__all__ = ["Preview", "ReportedDrift", "plan_comment", "read_drift", "read_preview"]
