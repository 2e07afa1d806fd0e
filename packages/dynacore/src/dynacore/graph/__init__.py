"""The graph of one capture: what a torch operation is, what it returns, and the `torch.fx` graph that is built of them."""
