"""One run of an application, for `headwater run` and `spark-submit`: command line, options, start and end."""
