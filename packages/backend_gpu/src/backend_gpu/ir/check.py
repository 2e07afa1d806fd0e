"""The checker of tensor graphs: what every stage may rely on. A violation is a fault of the stage before."""

from __future__ import annotations

from .index import Atom, Expr, Index, Var, bounds, is_below, of_atom, substitute, variables
from .nodes import COMPUTED, Graph, Guard, Node
from .pointwise import TABLE, expected_dtypes, result_dtype


class IRError(AssertionError):
    """A stage made something that its form doesn't allow."""


def require(condition: object, node: Node, text: str) -> None:
    """Raise `IRError` with the node's line unless the condition holds."""
    if not condition:
        raise IRError(f"{text}: {node.text()}")


def check_graph(graph: Graph) -> None:
    """Shapes, dtypes, strides, and that no index is out of range."""
    for node in graph.nodes():
        check_node(node)
    for target, value in graph.mutations:
        require(target.op == "input", target, "only inputs are overwritten")
        require(target.shape == value.shape and target.dtype == value.dtype, value, "overwrites another shape or dtype")


def check_node(node: Node) -> None:
    """One node against its inputs."""
    require(all(isinstance(size, int) and size >= 0 or not isinstance(size, int) for size in node.shape), node, "size")
    layout = node.layout()
    require(len(layout) == len(node.shape), node, "strides don't fit the shape")
    if node.op in TABLE:
        _check_pointwise(node)
    elif node.op in ("view", "gather"):
        _check_index(node, node.inputs[0].shape, node.inputs[1:], node.shape)
        require(node.dtype == node.inputs[0].dtype, node, "a view has the dtype of its source")
    elif node.op == "scatter":
        base, value, *indices = node.inputs
        require(base.shape == node.shape and base.dtype == node.dtype == value.dtype, node, "scatter")
        _check_index(node, base.shape, tuple(indices), value.shape)
    elif node.op == "reduce":
        kept = tuple(s for d, s in enumerate(node.inputs[0].shape) if d not in node.attrs["dims"])
        require(node.shape == kept, node, "a reduction leaves the other dimensions")
    elif node.op == "scan":
        require(node.shape == node.inputs[0].shape and node.dtype == node.inputs[0].dtype, node, "a scan keeps both")
    else:
        require(node.op in ("input", "const", "index", "extern", "item", "layout"), node, "unknown operation")
    if node.op == "layout":
        require(node.shape == node.inputs[0].shape, node, "a layout keeps the shape")
    if node.op not in ("input", "extern", "item"):
        require(node.dtype in COMPUTED, node, "a dtype that kernels don't compute with")


def _check_pointwise(node: Node) -> None:
    row = TABLE[node.op]
    dtypes = tuple(source.dtype for source in node.inputs)
    require(len(node.inputs) == row.arity, node, "number of operands")
    require(all(source.shape == node.shape for source in node.inputs), node, "operands of another shape")
    require(expected_dtypes(node.op, dtypes), node, f"operands of dtypes {dtypes}")
    if node.op not in ("cast", "bitcast"):
        require(node.dtype == result_dtype(node.op, dtypes), node, "dtype of the result")


def _check_index(node: Node, source: tuple[Index, ...], gathered: tuple[Node, ...], shape: tuple[Index, ...]) -> None:
    index, guards = node.attrs["index"], node.attrs.get("guards", ())
    require(len(index) == len(source), node, "one index for each dimension of the source")
    known = {f"i{d}" for d in range(len(shape))} | {f"j{d}" for d in range(len(gathered))}
    for part in index:
        for variable in variables(part):
            own = variable.name in known
            require(own or variable.name.startswith("s"), node, f"unknown variable {variable}")
            if variable.name.startswith("i") and own:
                require(variable.high == shape[int(variable.name[1:])], node, f"range of {variable}")
    if 0 in shape:
        return
    for part, size in zip(index, source):
        # With symbolic sizes not all that holds can be shown.
        symbolic = any(v.name.startswith("s") for value in (part, size) for v in variables(value))
        require(symbolic or in_range(part, size, guards), node, f"{part} may be outside 0:{size}")


def in_range(part: Index, size: Index, guards: tuple[Guard, ...]) -> bool:
    """Whether `0 <= part < size` wherever the guards hold."""
    if is_below(part, size):
        return True
    low, high = bounds(part)
    for expr, least, limit in guards:
        # part differs from a guarded expression by a constant or is divided out of it
        difference = part - expr
        if not any(v.name[0] in "ij" for v in variables(difference)):
            if bounds(least + difference)[0] >= 0 and bounds(size - (limit + difference))[0] >= 0:
                return True
        if isinstance(difference, int):
            if isinstance(least, int):
                low = max(low, least + difference)
            if isinstance(limit, int):
                high = min(high, limit - 1 + difference)
            elif limit + difference == size:
                high = min(high, bounds(size)[0] - 1)
    if low >= 0 and isinstance(size, int) and high < size:
        return True
    return low >= 0 and high < bounds(size)[0] or _guarded_parts(part, size, guards)


def _guarded_parts(part: Index, size: Index, guards: tuple[Guard, ...]) -> bool:
    """A guard may bound a variable inside a larger index, or what one makes up with others: then the guard's expression
    is put in its place."""
    if isinstance(part, int):
        return 0 <= part < bounds(size)[0]
    values: dict[Atom, Index] = {}
    for expr, least, limit in guards:
        if isinstance(expr, Expr) and isinstance(least, int):
            for variable in variables(expr):
                offset = expr - of_atom(variable)
                if not isinstance(offset, int):
                    if variable not in values and not any(v == variable for v in variables(offset)):
                        guarded = of_atom(Var(variable.name + "'", limit, least))
                        values[variable] = guarded - offset
                        break
                    continue
                low = max(least - offset, variable.low)
                top = limit - offset if isinstance(limit, int) else variable.high
                values[variable] = of_atom(Var(variable.name + "'", top, low))
    return bool(values) and is_below(substitute(part, values), size)
