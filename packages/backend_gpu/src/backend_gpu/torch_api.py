"""Every private name of torch that this package uses, in this one file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
OPERATION = torch._ops.OpOverload

FROM_THE_WHOLE_TABLE = (
    "gelu", "native_layer_norm", "_softmax", "_log_softmax", "native_group_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "native_batch_norm",
    "batch_norm_backward", "hardtanh", "leaky_relu", "elu", "upsample_nearest2d", "index_select", "linalg_vector_norm",
    "logsumexp", "_unsafe_index", "upsample_bilinear2d", "dot", "xlogy",
)  # fmt: skip
"""Operations whose decomposition core ATen leaves out, and whose parts kernels fuse."""


STAY_WHOLE = ("aten._scaled_dot_product", "aten._efficient_attention", "aten._flash_attention")
"""Operations that ATen does better as a whole than its parts would be."""


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Torch's own decompositions into operations that `lower` knows."""
    from torch import _decomp

    table = dict(_decomp._core_aten_decompositions_post_autograd())
    whole = _decomp.decomposition_table
    for name in FROM_THE_WHOLE_TABLE:
        packet = getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            operation = getattr(packet, overload)
            if operation in whole:
                table[operation] = whole[operation]
    return {op: rule for op, rule in table.items() if not packet_name(op).startswith(STAY_WHOLE)}


def compile_with_aot(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    compile_graph: Callable[[torch.fx.GraphModule, Sequence[Any], bool], Callable[[list[Any]], Any]],
    table: dict[Any, Callable[..., Any]],
    before_partition: Callable[[torch.fx.GraphModule], None],
) -> tuple[Callable[..., Any], bool]:
    """Forward and backward graphs of ATen operations, each given to `compile_graph(graph, inputs, is_backward)`.

    Returns what to call, and whether it changes an input in place.
    """
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._guards import TracingContext, detect_fake_mode, tracing
    from torch._subclasses.fake_tensor import FakeTensorMode

    def partition(joint: torch.fx.GraphModule, joint_inputs: Any, **keywords: Any) -> Any:
        before_partition(joint)
        return min_cut_rematerialization_partition(joint, joint_inputs, **keywords)

    def boxed(is_backward: bool) -> Callable[..., Any]:
        def compiler(graph: torch.fx.GraphModule, example: Sequence[Any]) -> Any:
            run = compile_graph(graph, example, is_backward)
            run._boxed_call = True  # type: ignore[attr-defined]
            return run

        return compiler

    context = TracingContext(detect_fake_mode(inputs) or FakeTensorMode(allow_non_fake_inputs=True))
    with tracing(context):
        compiled = aot_module_simplified(
            gm, inputs, fw_compiler=boxed(False), bw_compiler=boxed(True), inference_compiler=boxed(False),
            partition_fn=partition, decompositions=table, keep_inference_input_mutations=True,
        )  # fmt: skip
    found = context.fw_metadata
    mutates = found is None or any(info.mutates_data or info.mutates_metadata for info in found.input_info)
    return compiled, mutates


def must_recompute() -> Any:
    """The mark of a node that the backward graph computes again instead of loading."""
    from torch.utils.checkpoint import CheckpointPolicy

    return CheckpointPolicy.MUST_RECOMPUTE


def packet_name(operation: Any) -> str:
    """`aten.add` for any overload of it."""
    schema = getattr(operation, "_schema", None)
    return schema.name.replace("::", ".") if schema is not None else str(operation)


def schema_of(operation: Any) -> Any:
    """The schema of an ATen operation."""
    return operation._schema


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """`function` of every leaf of nested containers."""
    from torch.utils._pytree import tree_map as mapped

    return mapped(function, tree)


def sympy_expression(value: Any) -> Any:
    """What a symbolic number stands for, as a sympy expression."""
    return value.node.expr


def hint(value: Any) -> int:
    """The example that a symbolic number was made from."""
    found = value.node.hint
    return int(found) if found is not None else 8


def without_autograd() -> Any:
    """A context in which ATen operations record nothing."""
    return torch._C._AutoDispatchBelowAutograd()


def default_generator(device: torch.device) -> torch.Generator:
    """The generator that torch.manual_seed sets, for a device."""
    if device.type == "cuda":
        index = device.index if device.index is not None else torch.cuda.current_device()
        return torch.cuda.default_generators[index]
    return torch.default_generator


def current_raw_stream(device_index: int) -> int:
    """The handle of the current CUDA stream."""
    return torch._C._cuda_getCurrentRawStream(device_index)


def storage_uses(tensor: torch.Tensor) -> int:
    """How many references there are to the memory behind a tensor."""
    return torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)


def alias_of(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor over the same memory, that counts as a reference to it."""
    return torch.as_strided(tensor, tensor.shape, tensor.stride(), tensor.storage_offset())


def real_tensors() -> Any:
    """A context in which new tensors are real, whatever is being traced around it."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    return unset_fake_temporarily()


def is_fake(value: Any) -> bool:
    """Whether a tensor has no data."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)
