"""The pull request comment: the changes of a preview, and the drift before it.

Its input is the output of `headwater plan --format json` or `pulumi preview --json`, and of `headwater drift
--format json`.
"""

from headwater.report.plan_comment.comment import plan_comment
from headwater.report.plan_comment.plan_file import read_plan
from headwater.report.plan_comment.preview import Preview, read_preview
from headwater.report.plan_comment.reported_drift import ReportedDrift, read_drift

__all__ = ["Preview", "ReportedDrift", "plan_comment", "read_drift", "read_plan", "read_preview"]
