"""Reports of an `Upgrade`: text, JSON and Markdown.

`headwater.planner.upgrade` finds the changes; the modules here render them.
"""
