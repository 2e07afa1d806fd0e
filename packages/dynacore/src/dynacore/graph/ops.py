"""What is a torch operation: asked of torch, once, at the first question.

An operation is a leaf: it becomes one node of the graph and nothing looks inside. Some leaves can't be part of a graph
since they leave the world of tensors or their output's shape is unknown; `refusal` says why.
"""

from __future__ import annotations

import functools
import operator
import types
from typing import Any

import torch
from torch.overrides import get_overridable_functions

from ..marks import is_allowed_in_graph
from ..torch_api import OPERATOR_TYPES, op_namespaces

METHOD_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType)

#: slots of torch.Tensor that operators reach
SLOT_METHODS = ("__getitem__", "__setitem__", "__delitem__")

#: operators that make a node when an operand is a tensor
OPERATORS: frozenset[Any] = frozenset(
    getattr(operator, name)
    for name in (
        "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift neg pos invert abs "
        "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift "
        "eq ne lt le gt ge getitem setitem"
    ).split()
)

#: namespaces of `torch.ops` whose operations are those of `torch` by the same names
TORCHS_NAMESPACES = ("aten", "prims")

#: Python functions that torch calls overridable, but whose Python code has to be followed
NOT_LEAVES = frozenset(
    "triplet_margin_with_distance_loss sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum _sym_sqrt "
    "_clear_non_serializable_cached_data _reduce_ex_internal __hash__ __dir__ __getattribute__ __setattr__ "
    "__delattr__".split()
)


def _refusals() -> dict[str, str]:
    names = {
        "tensor-to-python": "item tolist __bool__ __nonzero__ __int__ __long__ __float__ __complex__ __index__ "
        "__contains__ equal allclose is_nonzero __iter__ __format__ __repr__ __str__ __reversed__ dim_order",
        "numpy": "numpy __array__ __array_wrap__ from_numpy frombuffer asarray",
        "tensor-storage": "data_ptr const_data_ptr storage untyped_storage _typed_storage set_ share_memory_ is_shared "
        "is_set_to resize_ resize_as_ resize resize_as storage_type storage_offset pin_memory is_pinned __dlpack__ "
        "__dlpack_device__ from_file from_dlpack __deepcopy__ __reduce__ __reduce_ex__ __setstate__ __getstate__ "
        "_make_subclass _make_wrapper_subclass as_subclass module_load apply_ map_ map2_",
        "autograd": "backward register_hook register_post_accumulate_grad_hook retain_grad _backward",
        "data-dependent-shape": "nonzero argwhere masked_select unique unique_consecutive unique_dim _unique _unique2 "
        "bincount to_sparse to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc to_sparse_coo to_dense coalesce",
        "op-unsupported": "names refine_names rename rename_ align_to align_as to_mkldnn lobpcg "
        "quantize_per_tensor quantize_per_channel "
        # AOTAutograd refuses their empty lists of tensors
        "_fused_adam_ _fused_adamw_",
        # torch's rules for tensors without data lay these results out in another way than the kernels do
        "op-failed-on-meta": "native_layer_norm native_batch_norm _native_batch_norm_legit _batch_norm_with_update svd "
        "linalg_svd linalg_eig fft_hfft2 fft_hfftn fft_rfft2 fft_rfftn max_unpool1d max_unpool2d max_unpool3d "
        "nonzero_static",
        "random-state": "seed manual_seed initial_seed get_rng_state set_rng_state",
    }
    return {name: code for code, text in names.items() for name in text.split()}


REFUSALS = _refusals()


@functools.cache
def _table() -> dict[int, Any]:
    """id -> operation, of all leaves; the objects are kept so that the ids stay theirs."""
    table: dict[int, Any] = {}
    for namespace in op_namespaces():
        for name in dir(namespace):
            function = getattr(namespace, name)
            if isinstance(function, types.BuiltinFunctionType) and not name.startswith("__"):
                table[id(function)] = function
    for functions in get_overridable_functions().values():
        for function in functions:
            # Torch counts a class, autocast: making an instance is no operation.
            if (
                callable(function)
                and not isinstance(function, type)
                and getattr(function, "__name__", "") not in NOT_LEAVES
            ):
                table[id(function)] = function
    for name in dir(torch.Tensor):
        method = getattr(torch.Tensor, name)
        leaf = isinstance(method, (types.MethodDescriptorType, types.FunctionType)) and name not in NOT_LEAVES
        if leaf or name in SLOT_METHODS or (name in REFUSALS and callable(method)):
            table[id(method)] = method
    for function in (torch.tensor, torch.as_tensor, torch.sparse_coo_tensor):
        table[id(function)] = function
    for function in (torch.promote_types, torch.can_cast):  # no tensors: rules fold them
        del table[id(function)]
    return table


def is_op(function: Any) -> bool:
    """Whether calling `function` makes a node of the graph (or is refused there)."""
    return id(function) in _table() or type(function) in OPERATOR_TYPES or is_leaf_by_mark(function)


def is_leaf_by_mark(function: Any) -> bool:
    """Whether the user declared the function to be a leaf (`dynacore.allow_in_graph`)."""
    return type(function) in (types.FunctionType, types.BuiltinFunctionType) and is_allowed_in_graph(function)


def is_method(function: Any) -> bool:
    """Whether `function` is a method of tensors."""
    if isinstance(function, METHOD_TYPES):
        return issubclass(torch.Tensor, function.__objclass__)
    return isinstance(function, types.FunctionType) and getattr(torch.Tensor, function.__name__, None) is function


def name_of(function: Any) -> str:
    """The operation's name, by which rules are found. What isn't torch's own has its namespace or module in front:
    no rule is meant for it."""
    if type(function) in OPERATOR_TYPES:
        namespace, name = str(function).split(".")[:2]
        return name if namespace in TORCHS_NAMESPACES else f"{namespace}::{name}"
    name = getattr(function, "__name__", type(function).__name__)
    own = id(function) in _table() or not is_leaf_by_mark(function)
    return name if own else f"{function.__module__}.{name}"


def refusal(function: Any, name: str) -> str | None:
    """The reason code when the operation can't be part of a graph at all."""
    return None if is_leaf_by_mark(function) else REFUSALS.get(name)


@functools.cache
def overloads(name: str) -> list[Any]:
    """All overloads of the ATen operation `name`; none when there is no such operation."""
    packet = getattr(torch.ops.aten, name, None)
    return [] if packet is None else [getattr(packet, overload) for overload in packet.overloads()]


@functools.cache
def overload_tags(name: str) -> set[Any]:
    """The tags of all overloads of the ATen operation `name`."""
    return {tag for overload in overloads(name) for tag in overload.tags}


@functools.cache
def is_view_op(name: str) -> bool:
    """Whether the ATen operation `name` only makes views."""
    return any(overload.is_view for overload in overloads(name))
