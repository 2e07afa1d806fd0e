"""Guards: what must hold for an entry to be run. `spec` is the format, `twin` the evaluation in plain Python."""
