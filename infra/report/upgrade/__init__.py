"""Reports of an `Upgrade`: text, JSON and Markdown.

`infra.planner.upgrade` finds the changes; the modules here render them.
"""
