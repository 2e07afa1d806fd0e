"""What the stages hand to each other: index expressions, tensors as nodes, and kernels as loop programs."""
