"""State stores: backends, overlays of a batch, and typed stores on top of them."""
