"""Which executor has which task."""
