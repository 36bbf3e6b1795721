"""The topics of an application on the cluster: check, create and reconfigure them, read what they record."""
