"""Which of torch's types behave how: public names only."""

from __future__ import annotations

import torch


def device_types() -> tuple[type, ...]:
    """The types of torch's constants: devices (compared by value), then those whose instances are unique."""
    return torch.device, torch.dtype, torch.layout, torch.memory_format


def immutable_types() -> tuple[type, ...]:
    """Types of torch written in C whose objects never change."""
    return *device_types(), torch.finfo, torch.iinfo


def is_plain(cls: type) -> bool:
    """Whether tensors of this class behave as torch.Tensor does."""
    return cls is torch.Tensor or cls is torch.nn.Parameter
