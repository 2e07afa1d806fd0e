"""Programs with one call in them that can't be captured, each in another place.

Each function takes `host`, the call, and returns the program.
"""

from contextlib import contextmanager

import torch
from torch import nn


def straight(host):
    def program(x):
        x = host(torch.exp(-x * x))
        return torch.log1p(x) * 2

    return program


def for_range(host):
    def program(x):
        for step in range(8):
            x = torch.sin(x) + step
            host(x)
            x = x * 0.5 - 1
        return x

    return program


def for_items(host):
    scales = {"a": 0.5, "b": 2.0, "c": -1.0, "d": 0.25}

    def program(x):
        for (name, scale), offset in zip(scales.items(), range(4), strict=True):
            x = torch.cos(x * scale) + offset
            host(x)
            x = x.abs() if name == "c" else x.exp() - 1
        return x

    return program


def while_loop(host):
    def program(x):
        left = 5
        while left:
            x = host(torch.sigmoid(x) * left) + 1
            left -= 1
        return x * x

    return program


def with_block(host):
    def program(x):
        with torch.no_grad():
            x = torch.tan(x * 0.5)
            host(x)
            x = torch.atan(x) + 1
        return x - 2

    return program


def user_context(host):
    @contextmanager
    def doubled(x):
        yield x * 2

    def program(x):
        with doubled(x) as y:
            y = torch.sin(y)
            host(y)
            y = y + x
        return y * 3

    return program


def try_finally(host):
    def program(x):
        try:
            x = host(torch.sin(x) * 4)
            x = torch.cos(x) - 1
        except ValueError:
            x = x * 0
        finally:
            x = x + 1
        return x / 2

    return program


def except_handler(host):
    def program(x):
        try:
            raise KeyError("expected")
        except KeyError as error:
            x = torch.sin(x) + len(error.args)
            host(x)
            x = torch.cos(x) * 2
        return x - 1

    return program


def three_deep(host):
    def inner(x):
        x = host(torch.sin(x) + 1)
        return torch.cos(x) * 2

    def middle(x):
        return inner(x * 2) - inner(x * 3)

    def program(x):
        for _ in range(3):
            x = middle(x + 1) * 0.5
        return x

    return program


def comprehension(host):
    def program(x):
        parts = [host(torch.sin(x + i)) * 2 for i in range(6)]
        return torch.stack(parts).sum(0) - 1

    return program


def generator(host):
    def steps(x):
        for i in range(4):
            x = torch.sin(x) + i
            host(x)
            yield x * 2

    def program(x):
        total = x * 0
        for step in steps(x):
            total = total + step.square()
        return total

    return program


def argument(host):
    def program(x):
        return torch.add(torch.sin(x), host(torch.cos(x) * 2), alpha=3) * torch.tanh(x)

    return program


def early_exit(host):
    def program(x):
        for step in range(20):
            x = x * 1.5 + torch.sin(x)
            host(x)
            if step == 7:
                break
            x = x - 0.25
        return torch.tanh(x) + 1

    return program


def tensor_branch(host):
    def program(x):
        if x.mean() > 0:
            x = torch.sin(x) * 3
        else:
            x = torch.cos(x) * 2
        return x + 1

    return program


class Block(nn.Module):
    """A layer that shows its activations to someone."""

    def __init__(self, host):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.host = host

    def forward(self, x):
        x = torch.relu(self.linear(x))
        self.host(x)
        return torch.tanh(x) * 2


def layers(host):
    torch.manual_seed(0)
    return nn.Sequential(*(Block(host) for _ in range(16)))


HARD = {
    make.__name__: make
    for make in (
        straight, for_range, for_items, while_loop, with_block, user_context, try_finally, except_handler,
        three_deep, comprehension, generator, argument, early_exit, tensor_branch, layers,
    )
}  # fmt: skip
