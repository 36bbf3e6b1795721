"""State stores: ordered bytes in memory and on LMDB, a batch's overlay over them, typed stores on top."""
