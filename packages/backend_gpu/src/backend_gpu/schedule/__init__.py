"""Which tensors are computed together, in which kernel, and in which order."""
