"""A model under dynacore.compile against the same model as it is: results, gradients, buffers, torch's random state."""

import copy

import torch

import dynacore


class Graphs:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self):
        self.modules = []

    def __call__(self, graph, inputs):
        self.modules.append(graph)
        return graph.forward

    def __len__(self):
        return len(self.modules)


def difference(ours, theirs):
    """Where two results differ, or None. Objects with attributes are compared by these."""
    ours, theirs = leaves(ours), leaves(theirs)
    if len(ours) != len(theirs):
        return f"{len(ours)} parts instead of {len(theirs)}"
    for at, (mine, other) in enumerate(zip(ours, theirs)):
        if not isinstance(mine, torch.Tensor) or not isinstance(other, torch.Tensor):
            if mine != other:
                return f"part {at}: {mine!r} instead of {other!r}"
            continue
        try:
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5, equal_nan=True, check_stride=True)
        except AssertionError as error:
            return f"part {at}: {error}"
        if mine.requires_grad is not other.requires_grad:
            return f"part {at}: requires_grad {mine.requires_grad}"
    return None


def leaves(obj):
    """The tensors and constants in a structure of containers and objects, in order."""
    if isinstance(obj, torch.Tensor):
        return [obj]
    if isinstance(obj, dict):
        return [leaf for key in obj for leaf in (key, *leaves(obj[key]))]
    if isinstance(obj, (list, tuple)):
        return [leaf for item in obj for leaf in leaves(item)]
    if hasattr(obj, "__dict__") and not isinstance(obj, type):
        return leaves(dict(sorted(vars(obj).items())))
    return [obj if isinstance(obj, (int, float, str, type(None))) else type(obj)]


def run(call, module, args, kwargs, backward):
    """One call: what it gives, the gradients, the buffers and the state of torch's generator afterwards."""
    torch.manual_seed(7)
    module.zero_grad(set_to_none=True)
    with torch.set_grad_enabled(backward):
        result = call(*args, **kwargs)
        if backward:
            tensors = [t for t in leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
            if tensors:
                sum(t.abs().sum() for t in tensors).backward()
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    return result, gradients, dict(module.named_buffers()), torch.get_rng_state()


def assert_like_eager(module, args, kwargs, *, training, fullgraph, calls=2):
    """Call a copy of `module` compiled and `module` as it is, forward and backward when training; how many graphs."""
    module.train(training)
    twin = copy.deepcopy(module)
    mine, theirs = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
    graphs = Graphs()
    with dynacore.config.patch(verify=True):
        compiled = dynacore.compile(twin, backend=graphs, fullgraph=fullgraph)
        for at in range(calls):
            expected = run(module, module, *theirs, training)
            found = run(compiled, twin, *mine, training)
            assert not difference(found, expected), f"call {at}: {difference(found, expected)}"
            assert not difference(mine, theirs), f"call {at} changes its arguments: {difference(mine, theirs)}"
    return graphs


def number_of_operations(graphs):
    """Operations of all graphs together."""
    return sum(node.op.startswith("call") for graph in graphs.modules for node in graph.graph.nodes)


__all__ = ["Graphs", "assert_like_eager", "difference", "number_of_operations"]
