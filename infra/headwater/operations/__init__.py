"""What commands, Pulumi's program and applications have in common: read a cluster, compile for it, plan."""
