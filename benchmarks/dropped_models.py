"""What stays behind when models are made, compiled, called and dropped: memory and live objects over many of them.

`python benchmarks/dropped_models.py [100000]` prints both twenty times on the way. Neither is to grow once the first
few hundred have warmed torch's and Python's own caches.
"""

import gc
import sys
import weakref
from pathlib import Path

import torch

import dynacore
from dynacore import _C

X = torch.ones(2, 3)
PAGE = 4  # KiB


class Scaled(torch.nn.Module):
    """A layer with configuration of its own."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.linear, self.offset, self.config = torch.nn.Linear(3, 3), offset, {"scales": [1, 2]}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * self.config["scales"][0] + self.offset


def use_model(n: int) -> torch.nn.Module:
    """The model itself is compiled."""
    model = Scaled(n % 7)
    compiled = dynacore.compile(model, backend="eager")
    compiled(X)
    compiled(X)
    return model


def use_sequence(n: int) -> torch.nn.Module:
    """The same, of torch's own modules."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    dynacore.compile(model, backend="eager")(X)
    return model


def use_closure(n: int) -> torch.nn.Module:
    """A function that closes over the model."""
    model = Scaled(n % 7)
    dynacore.compile(lambda x: model(x) + 1, backend="eager")(X)
    return model


def use_argument(n: int) -> torch.nn.Module:
    """A function that takes the model."""
    model = Scaled(n % 7)
    compiled = dynacore.compile(lambda x, m: m(x), backend="eager")
    compiled(X, model)
    compiled(torch.ones(5, 3), model)
    return model


USES = (use_model, use_sequence, use_closure, use_argument)


def main(models: int) -> None:
    """Print what is alive after each twentieth of the models."""
    torch.set_num_threads(1)
    print(f"{'models':>8} {'resident KiB':>13} {'objects':>9}  watched")
    for n in range(models + 1):
        gone = weakref.ref(USES[n % len(USES)](n))
        if n % max(models // 20, 1) == 0:
            gc.collect()
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
            print(f"{n:8} {resident:13} {len(gc.get_objects()):9}  {sum(_C.watched().values())}", flush=True)
            assert gone() is None, "the last model is still alive"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
