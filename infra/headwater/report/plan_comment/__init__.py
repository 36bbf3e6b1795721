"""The pull request comment: the changes of a preview, and the drift before it.

Its input is the output of `headwater plan --format json` or `pulumi preview --json`, and of `headwater drift
--format json`.
"""

from headwater.report.plan_comment.comment import plan_comment
from headwater.report.plan_comment.inputs import Preview, ReportedDrift, read_drift, read_plan, read_preview

__all__ = ["Preview", "ReportedDrift", "plan_comment", "read_drift", "read_plan", "read_preview"]
