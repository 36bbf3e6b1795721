"""What commands and Pulumi's program have in common: read a cluster, compile documents for it, plan."""
