"""More processors for an application that is stopped: its state moves to them (KIP-287)."""
