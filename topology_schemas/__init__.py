"""The published JSON Schema of topology documents and the examples; data only."""
