"""The graph of one capture: what a torch operation is, what it returns, and the `torch.fx` graph built of them."""
