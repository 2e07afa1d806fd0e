"""Programs to capture: small functions that stress one thing each, modules written out, and models of transformers.

Every function here makes one program and returns it with its arguments.
"""

from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F


def pointwise():
    """Three operations on one tensor: what is left is the cost of a call."""

    def program(x):
        return torch.tanh(x * 3).add(x)

    return program, (torch.randn(16),)


def many_tensors():
    """Twenty-four tensors, positional and by keyword, through one level of packing and unpacking."""

    def weigh(*tensors, **scales):
        total = sum(tensors)
        for scale in scales.values():
            total = total * scale
        return total

    def program(*tensors):
        return weigh(*tensors[:16], first=tensors[16], second=tensors[17], rest=sum(tensors[18:]))

    return program, tuple(torch.randn(4) for _ in range(24))


@dataclass
class Schedule:
    """Plain Python state that a program reads a lot of."""

    steps: list[str] = field(default_factory=lambda: [f"step-{i}" for i in range(60)])
    rates: dict[str, float] = field(default_factory=lambda: {f"step-{i}": 1 / (i + 1) for i in range(60)})
    threshold: float = 0.05

    def active(self):
        return [(name, self.rates[name]) for name in self.steps if self.rates[name] > self.threshold]


def python_heavy():
    """Much Python for few operations: dataclass, comprehension, dict, enumerate, f-strings as keys."""
    schedule = Schedule()

    def program(x):
        totals = {}
        for index, (name, rate) in enumerate(schedule.active()):
            totals[f"{name}/{index % 3}"] = x * rate + index
        return sum(totals.values())

    return program, (torch.randn(16),)


def deep_mlp():
    """A hundred layers of one module class."""
    layers = [layer for _ in range(100) for layer in (nn.Linear(8, 8), nn.GELU())]
    return nn.Sequential(*layers).eval(), (torch.randn(2, 8),)


class Residual(nn.Module):
    """Two convolutions with batch normalisation, and a way around them."""

    def __init__(self, channels: int):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        out = x
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            out = F.relu(norm(convolution(out)))
        return x + out


def conv_net():
    """A residual network of eight blocks."""
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    return nn.Sequential(*(Residual(8) for _ in range(8)), head).eval(), (torch.randn(1, 8, 16, 16),)


class Recurrent(nn.Module):
    """A GRU cell over the steps of a sequence, in a Python loop."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 16)
        self.out = nn.Linear(16, 8)

    def forward(self, sequence):
        state = sequence.new_zeros(sequence.shape[1], 16)
        outputs = []
        for step in sequence.unbind():
            state = self.cell(step, state)
            outputs.append(self.out(state))
        return torch.stack(outputs)


def recurrent():
    """Twenty steps of a recurrent net."""
    return Recurrent().eval(), (torch.randn(20, 2, 8),)


class MessagePassing(nn.Module):
    """Messages along the edges of a graph, summed at their targets."""

    def __init__(self, rounds: int):
        super().__init__()
        self.rounds = nn.ModuleDict({f"round{i}": nn.Linear(16, 8) for i in range(rounds)})

    def forward(self, nodes, edges):
        sources, targets = edges
        for name, layer in self.rounds.items():
            messages = layer(torch.cat([nodes[sources], nodes[targets]], dim=-1))
            received = torch.zeros_like(nodes).index_add(0, targets, messages)
            nodes = nodes + torch.relu(received) if name != "round0" else received
        return nodes


def graph_net():
    """A graph network of six rounds."""
    edges = torch.randint(0, 12, (2, 40))
    return MessagePassing(6).eval(), (torch.randn(12, 8), edges)


def encoder():
    """torch's own transformer encoder, six layers."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval(), (torch.randn(2, 10, 32),)


NARROW = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 1000}
LAYERS = {"num_hidden_layers": 6}


def language_model(model, config_class, **config):
    """A model of transformers with random weights, called on two sequences of twelve tokens."""
    import transformers

    config = getattr(transformers, config_class)(**config)
    network = getattr(transformers, model)(config).eval()
    return (lambda ids: network(input_ids=ids)[0]), (torch.randint(3, 999, (2, 12)),)


def hf_vit():
    """The vision transformer of transformers."""
    import transformers

    config = transformers.ViTConfig(**NARROW, **LAYERS, image_size=32, patch_size=8)
    network = transformers.ViTModel(config).eval()
    return (lambda pixels: network(pixel_values=pixels)[0]), (torch.randn(2, 3, 32, 32),)


def hf_t5():
    """An encoder-decoder."""
    import transformers

    config = transformers.T5Config(vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=3, num_heads=4)
    network = transformers.T5Model(config).eval()
    ids = torch.randint(3, 999, (2, 12))
    return (lambda ids: network(input_ids=ids, decoder_input_ids=ids)[0]), (ids,)


def qwen3(layers: int):
    """Hugging Face Qwen3 of any depth: how costs grow with a model."""
    config = {**NARROW, "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": layers}
    return language_model("Qwen3ForCausalLM", "Qwen3Config", **config)


CAPTURE = {
    "pointwise": pointwise,
    "many_tensors": many_tensors,
    "python_heavy": python_heavy,
    "deep_mlp": deep_mlp,
    "conv_net": conv_net,
    "recurrent": recurrent,
    "graph_net": graph_net,
    "encoder": encoder,
    "hf_gpt2": partial(
        language_model, "GPT2LMHeadModel", "GPT2Config", n_embd=64, n_layer=6, n_head=4, vocab_size=1000
    ),
    "hf_bert": partial(language_model, "BertModel", "BertConfig", **NARROW, **LAYERS),
    "hf_llama": partial(
        language_model, "LlamaForCausalLM", "LlamaConfig", **NARROW, **LAYERS, num_key_value_heads=2
    ),
    "hf_mixtral": partial(
        language_model, "MixtralForCausalLM", "MixtralConfig", **NARROW, num_hidden_layers=2,
        num_key_value_heads=2, num_local_experts=4,
    ),
    "hf_vit": hf_vit,
    "hf_t5": hf_t5,
}  # fmt: skip

DEPTH = {f"qwen3, {layers} layers": partial(qwen3, layers) for layers in (2, 8, 32)}
