"""Which operations are taken apart before they are lowered."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from dynacore import torch_api

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
    table, whole = torch_api.decompositions()
    for name in FROM_THE_WHOLE_TABLE:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            operation = getattr(packet, overload)
            if operation in whole:
                table[operation] = whole[operation]
    return {op: rule for op, rule in table.items() if not torch_api.packet_name(op).startswith(STAY_WHOLE)}
