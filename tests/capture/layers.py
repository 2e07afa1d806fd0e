"""Small modules written by hand, by kind: convolutional, recurrent, on graphs, with hooks, buffers, random numbers …"""

import collections
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint

# -- convolutional --------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)
        same = stride == 1 and inner == outer
        self.down = None if same else nn.Sequential(nn.Conv2d(inner, outer, 1, stride), nn.BatchNorm2d(outer))

    def forward(self, x):
        identity = x if self.down is None else self.down(x)
        x = F.relu(self.norm(self.first(x)), inplace=True)
        x = self.norm2(self.second(x))
        x += identity
        return F.relu(x)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        self.layers = nn.ModuleList([Residual(8, 8), Residual(8, 16, 2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(torch.flatten(self.pool(x), 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([self.block(3, 8), self.block(8, 16)])
        self.middle = self.block(16, 16)
        self.up = nn.ModuleList([nn.ConvTranspose2d(16, 16, 2, 2), nn.ConvTranspose2d(8, 8, 2, 2)])
        self.merge = nn.ModuleList([self.block(32, 8), self.block(16, 8)])
        self.out = nn.Conv2d(8, 1, 1)

    @staticmethod
    def block(inner, outer):
        return nn.Sequential(
            nn.Conv2d(inner, outer, 3, padding=1), nn.GroupNorm(2, outer), nn.SiLU(), nn.Dropout2d(0.1),
            nn.Conv2d(outer, outer, 3, padding=1), nn.InstanceNorm2d(outer), nn.LeakyReLU(0.1),
        )  # fmt: skip

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(skips)):
            x = up(x)
            if x.shape[-1] != skip.shape[-1]:
                x = F.interpolate(x, size=skip.shape[-2:])
            x = merge(torch.cat([x, skip], dim=1))
        return torch.sigmoid(self.out(x))


class Diffusion(nn.Module):
    """A block of a diffusion model: a time embedding scales and shifts, attention over pixels and over a text."""

    def __init__(self, width=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2 * width))
        self.norm = nn.GroupNorm(4, width)
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.cross = nn.MultiheadAttention(width, 2, kdim=6, vdim=6, batch_first=True)

    def embed(self, t, width, period=10000.0):
        frequencies = torch.exp(-torch.arange(0, width, 2, device=t.device) / width * torch.log(torch.tensor(period)))
        angles = t[:, None].float() * frequencies[None]
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    def forward(self, x, t, text):
        scale, shift = self.time(self.embed(t, x.shape[1])).chunk(2, dim=1)
        h = self.conv(F.silu(self.norm(x) * (1 + scale[..., None, None]) + shift[..., None, None]))
        b, c, height, width = h.shape
        tokens = h.permute(0, 2, 3, 1).reshape(b, height * width, c)
        tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        tokens = tokens + self.cross(tokens, text, text)[0]
        return x + tokens.transpose(1, 2).view(b, c, height, width)


# -- recurrent ------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM, **options):
        super().__init__()
        self.net = kind(6, 8, 2, batch_first=True, **options)
        self.head = nn.Linear(16 if options.get("bidirectional") else 8, 3)

    def forward(self, x, state=None):
        out, state = self.net(x, state)
        return self.head(out), state


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(4, 6), nn.GRUCell(6, 5), nn.RNNCell(5, 3)

    def forward(self, x):
        h = c = None
        g, e, out = torch.zeros(x.size(0), 5), x.new_zeros(x.size(0), 3), []
        for t in range(x.size(1)):
            h, c = self.lstm(x[:, t], (h, c) if h is not None else None)
            g = self.gru(h, g)
            e = self.rnn(g, e)
            out.append(e)
        return torch.stack(out, 1), (h, c)


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(torch.randn(4)) for _ in range(3))

    def forward(self, u):
        h, ys = u.new_zeros(u.size(0), 4), []
        for t in range(u.size(1)):
            h = torch.exp(-self.a.abs()) * h + self.b * u[:, t : t + 1]
            ys.append((h * self.c).sum(-1))
        return torch.stack(ys, 1)


# -- on graphs ------------------------------------------------------------------------------------------------------


class GraphConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

    def propagate(self, x, edges):
        source, target = edges
        degree = torch.zeros(x.size(0)).scatter_add_(0, target, torch.ones(target.size(0))).clamp(min=1)
        messages = x[source] * (degree[source] * degree[target]).rsqrt().unsqueeze(-1)
        return torch.zeros_like(x).index_add_(0, target, messages)

    def forward(self, x, edges):
        x = F.elu(self.propagate(self.first(x), edges))
        return F.log_softmax(self.propagate(self.second(x), edges), -1)


class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 8, bias=False)
        self.score = nn.Parameter(torch.randn(2, 8))

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        h = self.project(x).view(-1, 2, 4)
        e = F.leaky_relu((torch.cat([h[source], h[target]], -1) * self.score).sum(-1), 0.2)
        top = torch.full((x.size(0), 2), float("-inf")).scatter_reduce(0, target[:, None].expand_as(e), e, "amax")
        weights = (e - top[target]).exp()
        total = torch.zeros(x.size(0), 2).index_add(0, target, weights)
        out = torch.zeros_like(h)
        out.index_add_(0, target, h[source] * (weights / total[target].clamp(min=1e-9)).unsqueeze(-1))
        return out.flatten(1)


# -- attention, experts, caches -------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.net = nn.MultiheadAttention(16, 4, dropout=0.1, batch_first=True, **options)

    def forward(self, x, mask=None):
        return self.net(x, x, x, key_padding_mask=mask, average_attn_weights=False)


class EncoderDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(16, 4, 1, 1, 32, batch_first=True, norm_first=True)

    def forward(self, a, b):
        mask = nn.Transformer.generate_square_subsequent_mask(b.size(1))
        return self.net(a, b, tgt_mask=mask, tgt_is_causal=True)


class DenseExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        outs = torch.stack([expert(x) for expert in self.experts], 1)
        return (outs.gather(1, chosen.unsqueeze(-1).expand(-1, -1, x.size(-1))) * weights.unsqueeze(-1)).sum(1)


class SparseExperts(DenseExperts):
    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for at, expert in enumerate(self.experts):
            rows, columns = torch.where(chosen == at)
            if rows.numel():
                out.index_add_(0, rows, expert(x[rows]) * weights[rows, columns, None])
        return out


class KeyValueCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.register_buffer("keys", torch.zeros(2, 10, 8))
        self.register_buffer("values", torch.zeros(2, 10, 8))
        self.at = 0

    def forward(self, x):
        query, key, value = self.project(x).chunk(3, -1)
        with torch.no_grad():
            self.keys[:, self.at : self.at + 1] = key
            self.values[:, self.at : self.at + 1] = value
        self.at += 1
        return F.scaled_dot_product_attention(query, self.keys[:, : self.at].clone(), self.values[:, : self.at].clone())


class Rotary(nn.Module):
    """Rotary embeddings; the tables are kept in a dict by length."""

    def __init__(self):
        super().__init__()
        self.register_buffer("inverse", 1 / (100 ** (torch.arange(0, 8, 2).float() / 8)), persistent=False)
        self.tables = {}

    def forward(self, q):
        n = q.size(-2)
        if n not in self.tables:
            angles = torch.outer(torch.arange(n, dtype=torch.float), self.inverse)
            self.tables[n] = angles.cos(), angles.sin()
        cos, sin = self.tables[n]
        a, b = q.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


# -- state: buffers, parametrisations, hooks, random numbers --------------------------------------------------------


class Norms(nn.Module):
    def __init__(self, momentum=0.1):
        super().__init__()
        self.tracked = nn.BatchNorm1d(4, momentum=momentum)
        self.untracked = nn.BatchNorm1d(4, track_running_stats=False)
        self.instance = nn.InstanceNorm1d(4, track_running_stats=True)
        self.others = nn.Sequential(nn.LayerNorm(4), nn.RMSNorm(4), nn.LocalResponseNorm(2))

    def forward(self, x):
        x = self.tracked(x) + self.untracked(x)
        x = self.instance(x.unsqueeze(-1).expand(-1, -1, 3))
        return self.others(x.transpose(1, 2))


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))
        self.linear = nn.Linear(4, 4)
        self.calls, self.last = 0, None

    def forward(self, x):
        self.count += 1
        y = self.linear(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
        self.calls += 1
        self.last = y.detach()
        self.mean = self.mean * 1
        return y - self.mean


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


def symmetric():
    linear = nn.Linear(4, 4)
    parametrize.register_parametrization(linear, "weight", Symmetric())
    return linear


class CachedParametrisation(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = symmetric()

    def forward(self, x):
        with parametrize.cached():
            return self.linear(self.linear(x))


class Dropouts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Dropout(0.3), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2), nn.Dropout1d(0.3)]
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x = x + torch.rand_like(x) + torch.randn(x.shape) + torch.bernoulli(torch.full_like(x, 0.5))
        return x + F.dropout(x, 0.1) + torch.randint(0, 3, x.shape) + torch.randperm(4)


class Hooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.first.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        self.first.register_forward_hook(lambda module, args, out: out + 1)
        self.second.register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs}), with_kwargs=True)
        self.second.register_forward_hook(lambda module, args, kwargs, out: out * 3, with_kwargs=True, always_call=True)

    def forward(self, x):
        return self.second(input=self.first(x))


def double_gradients(module, inputs, outputs):
    return tuple(None if gradient is None else gradient * 2 for gradient in inputs)


class BackwardHooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.linear.register_full_backward_hook(double_gradients)

    def forward(self, x):
        return self.linear(x).tanh()


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.ReLU())

    def forward(self, x):
        return checkpoint(self.second, self.first(x), use_reentrant=False).sum()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x * gradient * ctx.k, None  # three, not two: it is this that has to run


class OwnGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return Square.apply(self.linear(x), 3) + 1


# -- containers, structures, numbers --------------------------------------------------------------------------------


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.by_name = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})
        self.list = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(3)])
        self.dict = nn.ParameterDict({"x": nn.Parameter(torch.randn(4)), "y": nn.Parameter(torch.randn(4))})
        self.chain = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.modules_ = nn.ModuleList([nn.Linear(4, 4), nn.Identity()])

    def forward(self, x):
        for _name, module in self.by_name.items():
            x = module(x)
        for parameter in self.list:
            x = x + parameter
        for key in self.dict:
            x = x * self.dict[key]
        for at, module in enumerate(self.modules_):
            x = module(x) + at
        x = self.chain[:1](self.chain[1](x)) + len(self.modules_) + len(self.chain)
        for name, parameter in self.named_parameters():
            if "bias" in name:
                x = x + parameter.sum()
        return x + sum(parameter.sum() for parameter in self.parameters())


@dataclasses.dataclass
class Output:
    value: torch.Tensor
    extra: object = None


Pair = collections.namedtuple("Pair", "left right")


class Structures(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, *more, scale=2.0, **named):
        out = Output(self.linear(x))
        out.extra = Pair(out.value * scale, {"sum": sum(more), "first": [named[key] for key in sorted(named)]})
        return dataclasses.replace(out, value=out.value + 1), out.extra.left.shape


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, dtype=torch.cfloat))
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        spectrum = torch.fft.rfft(self.linear(x), dim=-1) * self.weight[0]
        z = torch.view_as_complex(torch.stack([x, x], -1)) * torch.polar(torch.ones(4), torch.arange(4.0))
        return (
            torch.fft.irfft(spectrum, n=4) + torch.view_as_real(z).sum(-1) + z.abs() + z.real * (z * (1 + 2j)).angle()
        )


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.first(x)
            with torch.autocast("cpu", enabled=False):
                y = self.second(x.float())
        return x, y


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 6), nn.Linear(3, 4)

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        decoded = self.decoder(mean + torch.randn_like(mean) * (0.5 * log_variance).exp())
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).mean()
        return {"decoded": decoded, "loss": F.mse_loss(decoded, x) + divergence}


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4)) for _ in range(3)])

    def forward(self, x):
        determinant = 0
        for at, net in enumerate(self.nets):
            a, b = x[:, :2], x[:, 2:]
            if at % 2:
                a, b = b, a
            scale, shift = net(a).split(2, 1)
            scale = torch.tanh(scale)
            b = b * scale.exp() + shift
            determinant = determinant + scale.sum(-1)
            x = torch.cat([b, a] if at % 2 else [a, b], 1)
        return x, determinant


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 4, mode="mean")
        self.table = nn.Embedding(20, 4, padding_idx=0, max_norm=1.0)

    def forward(self, ids, offsets):
        return self.bag(ids, offsets), self.bag(ids.view(2, -1)), self.table(ids)


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 5)
        self.losses = nn.ModuleList([nn.CrossEntropyLoss(label_smoothing=0.1), nn.MultiMarginLoss(), nn.NLLLoss()])

    def forward(self, x, y):
        z = self.linear(x)
        logs = z.log_softmax(-1)
        total = sum(loss(logs if isinstance(loss, nn.NLLLoss) else z, y) for loss in self.losses)
        total = total + F.kl_div(logs, z.softmax(-1), reduction="batchmean") + F.huber_loss(z, z * 0)
        total = total + F.binary_cross_entropy_with_logits(z, F.one_hot(y, 5).float(), pos_weight=torch.ones(5))
        return total + F.triplet_margin_loss(z, z + 1, z - 1) + F.smooth_l1_loss(z, z.detach() * 2)


def randn(*shape):
    return lambda: torch.randn(shape)


def edges():
    return torch.randint(0, 6, (2, 12))


def padded():
    return torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()


def case(module, *args, **kwargs):
    """How to make a module and what to call it with."""
    return lambda: (module(), tuple(make() for make in args), {name: make() for name, make in kwargs.items()})


#: captured as one graph
ONE_GRAPH = {
    "resnet": case(ResNet, randn(2, 3, 32, 32)),
    "unet": case(UNet, randn(2, 3, 16, 16)),
    "diffusion": case(Diffusion, randn(2, 8, 4, 4), lambda: torch.tensor([3, 7]), randn(2, 5, 6)),
    "convolutions": case(
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, padding="same"), nn.AvgPool1d(2), nn.Conv1d(4, 4, 3, padding=1, padding_mode="circular"),
            nn.LPPool1d(2, 2), nn.Upsample(scale_factor=2), nn.ConstantPad1d(1, 0.5), nn.Flatten(),
            nn.Unflatten(1, (2, -1)),
        ),
        randn(3, 2, 16),
    ),
    "lstm": case(Recurrent, randn(2, 5, 6)),
    "lstm_bidirectional": case(lambda: Recurrent(bidirectional=True, dropout=0.2), randn(2, 5, 6)),
    "gru": case(lambda: Recurrent(nn.GRU), randn(2, 5, 6), randn(2, 2, 8)),
    "rnn": case(lambda: Recurrent(nn.RNN), randn(2, 5, 6)),
    "cells": case(Cells, randn(2, 5, 4)),
    "state_space": case(StateSpace, randn(3, 6)),
    "graph_convolution": case(GraphConvolution, randn(6, 4), edges),
    "graph_attention": case(GraphAttention, randn(6, 4), edges),
    "attention": case(Attention, randn(2, 5, 16)),
    "attention_padded": case(Attention, randn(2, 5, 16), padded),
    "attention_biased": case(lambda: Attention(add_bias_kv=True, add_zero_attn=True), randn(2, 5, 16)),
    "encoder_decoder": case(EncoderDecoder, randn(2, 5, 16), randn(2, 4, 16)),
    "dense_experts": case(DenseExperts, randn(5, 4)),
    "key_value_cache": case(KeyValueCache, randn(2, 1, 8)),
    "rotary": case(Rotary, randn(2, 5, 8)),
    "norms": case(Norms, randn(6, 4)),
    "buffers": case(Buffers, randn(2, 4)),
    "weight_norm": case(lambda: parametrizations.weight_norm(nn.Linear(4, 4)), randn(2, 4)),
    "spectral_norm": case(lambda: parametrizations.spectral_norm(nn.Linear(4, 4)), randn(2, 4)),
    "orthogonal": case(lambda: parametrizations.orthogonal(nn.Linear(4, 4)), randn(2, 4)),
    "old_spectral_norm": case(lambda: nn.utils.spectral_norm(nn.Linear(4, 4)), randn(2, 4)),
    "parametrised": case(symmetric, randn(2, 4)),
    "cached_parametrisation": case(CachedParametrisation, randn(2, 4)),
    "dropouts": case(Dropouts, randn(3, 5, 4)),
    "hooks": case(Hooks, randn(2, 4)),
    "containers": case(Containers, randn(2, 4)),
    "structures": case(Structures, randn(5, 4), randn(4), randn(4), scale=lambda: 3.0, b=randn(2), a=randn(3)),
    "complex": case(Complex, randn(2, 4)),
    "autocast": case(Autocast, randn(2, 4)),
    "autoencoder": case(Autoencoder, randn(5, 4)),
    "flow": case(Flow, randn(3, 4)),
    "embeddings": case(Embeddings, lambda: torch.randint(0, 20, (8,)), lambda: torch.tensor([0, 3, 5])),
    "losses": case(Losses, randn(3, 4), lambda: torch.randint(0, 5, (3,))),
}  # fmt: skip

#: captured in several graphs when training: data decides, or autograd calls back
SEVERAL_GRAPHS = {
    "sparse_experts": case(SparseExperts, randn(5, 4)),
    "norms_cumulative": case(lambda: Norms(momentum=None), randn(6, 4)),
    "backward_hooks": case(BackwardHooks, randn(2, 4)),
    "checkpointed": case(Checkpointed, randn(2, 4)),
    "own_gradient": case(OwnGradient, randn(2, 4)),
}
