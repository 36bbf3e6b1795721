"""Add processors to a running application: copy their state meanwhile, then a short pause (KIP-287)."""
