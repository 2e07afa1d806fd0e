"""From a graph of ATen operations to a graph of `ir.nodes`."""
