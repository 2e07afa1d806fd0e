"""Loading kernels, launching them, and running a compiled program."""
