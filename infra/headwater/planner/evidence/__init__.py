"""PURE. Evidence of who owns a topic: groups, offsets, ownership records, documents, settings.

A name alone is no evidence. Belongs here: what is known of a topic, and whether it may be adopted or deleted.
"""
