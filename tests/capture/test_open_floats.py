"""Floats that change in every call stay open wherever an operation takes any: two captures, as in plain Python."""

import pytest
import torch
import torch.nn.functional as F
from capture.compare import difference
from capture.test_precision import Captures, X, compiled

import dynacore


@pytest.fixture
def captures():
    dynacore.reset()
    return Captures()


FLOATS = {
    "clamp": lambda x, s: x.clamp(-s, s) + torch.clamp(x, max=s),
    "pow": lambda x, s: x.abs() ** s + s**x + torch.pow(x.abs(), s),
    "chosen": lambda x, s: (x.masked_fill(x > 1, s), torch.where(x > 1, x, s), torch.where(x > s, s, x)),
    "new": lambda x, s: (torch.full((2,), s), torch.full_like(x, s), x.new_full((3,), s), torch.tensor([s, 1.0])),
    "filled": lambda x, s: x.clone().fill_(s),
    "in place": lambda x, s: x.clone().mul_(s).add_(x, alpha=s).clamp_(max=s),
    "mixed": lambda x, s: torch.lerp(x, x + 1, s) + torch.add(x, x, alpha=s) + torch.addcmul(x, x, x, value=s),
    "activations": lambda x, s: F.leaky_relu(x, s) + F.elu(x, s) + F.softplus(x, s) + F.hardtanh(x, -s, s),
    "norm": lambda x, s: F.layer_norm(x, (4,), eps=s) + F.normalize(x[None], eps=s)[0],
    "integers": lambda x, s: (x.long() * s, x.long() + s, x.long() ** s, x % s, x // s),
    "written": lambda x, s: (filled(x, s), F.pad(x, (1, 1), value=s), x.index_fill(0, torch.tensor(0), s)),
    "norms": lambda x, s: (x.norm(1 + s), torch.cdist(x[None], x[None], 1 + s), torch.renorm(x[None], 2, 0, s)),
    "statistics": lambda x, s: (F.batch_norm(x[None].t(), None, None, training=True, eps=s), x.isclose(x, s)),
    "losses": lambda x, s: (
        F.cross_entropy(x[None], torch.tensor([1]), label_smoothing=s / 9),
        F.triplet_margin_loss(x[None], x[None] * 2, x[None] * 3, margin=s),
        F.hinge_embedding_loss(x, x.sign(), margin=s),
    ),
    "attention": lambda x, s: F.scaled_dot_product_attention(*(x.view(1, 1, 2, 2),) * 3, scale=s),
    "lists": lambda x, s: torch._foreach_mul([x, x + 1], s),
    "computed": lambda x, s: (x * (s * 2 + 1), f"{s}", max(s, 0.25), -s),
}


def filled(x, s):
    y = x.clone()
    y[0], y[1:2] = s, s
    y[y > 1] = s
    return y


RANDOM = {
    "dropout": lambda x, p: F.dropout(x, p),
    "channels": lambda x, p: (F.dropout1d(x.view(1, 4, 1), p), F.alpha_dropout(x, p, training=True)),
    "attention": lambda x, p: F.scaled_dot_product_attention(*(x.view(1, 1, 2, 2),) * 3, dropout_p=p),
    "drawn": lambda x, p: (torch.bernoulli(x, p=p), torch.normal(p, p, (3,)), x.clone().normal_(p, std=p)),
    "between": lambda x, p: (x.clone().uniform_(-p, p), x.clone().uniform_(p), F.rrelu(x, p / 9, p, training=True)),
}


def test_ends_of_a_range_in_no_order(captures):
    def program(x, low, high):
        return x.clone().uniform_(low, to=high)

    fast = compiled(program)
    for i in range(6):
        fast(X, -i / 2, i)
    assert captures.new() == 2
    for low, high in ((2.5, 1.5), (0.0, float("nan")), (-4e38, 4e38)):
        with pytest.raises(RuntimeError) as plain:
            program(X, low, high)
        with pytest.raises(RuntimeError) as ours:
            fast(X, low, high)
        assert str(ours.value) == str(plain.value)


@pytest.mark.parametrize("program", RANDOM.values(), ids=RANDOM)
def test_a_probability_that_changes_every_call(captures, program):
    """Where it is 0 or 1, some operations do something else: the tensor itself comes back."""
    fast = compiled(program)

    def agrees(p):
        torch.manual_seed(0)
        plain = program(X, p)
        torch.manual_seed(0)
        return difference(fast(X, p), plain) is None

    assert all(agrees(p / 10) for p in range(1, 9))
    assert captures.new() == 2
    assert all(agrees(p) for p in (0.0, 1.0, 0.5, 0.0))
    assert captures.new() <= 2


@pytest.mark.parametrize("program", FLOATS.values(), ids=FLOATS)
def test_a_float_in_many_places(captures, program):
    fast = compiled(program)
    for i in range(8):
        assert difference(fast(X, i + 0.5), program(X, i + 0.5)) is None
    assert captures.new() == 2
