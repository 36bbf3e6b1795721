"""`headwater new`: the files of a new repository for topology documents. `files/` has their templates."""
