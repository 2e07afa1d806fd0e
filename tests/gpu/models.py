"""Small models, made without downloads: each as (module, keyword arguments of a call whose result has a loss)."""

import torch
import torch.nn.functional as F
from torch import nn

IDS = torch.arange(18).view(2, 9) * 7 % 50


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)  # fmt: skip
    return GPT2LMHeadModel(config), {"input_ids": IDS, "labels": IDS, "use_cache": False}


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16)  # fmt: skip
    return LlamaForCausalLM(config), {"input_ids": IDS, "labels": IDS, "use_cache": False}


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=24, max_position_embeddings=16, hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0)  # fmt: skip
    return BertForSequenceClassification(config), {"input_ids": IDS, "labels": torch.tensor([0, 1])}


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
                       image_size=16, patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                       num_labels=3)  # fmt: skip
    images = torch.linspace(-1, 1, 2 * 3 * 16 * 16).view(2, 3, 16, 16)
    return ViTForImageClassification(config), {"pixel_values": images, "labels": torch.tensor([0, 2])}


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_decoder_layers=1, num_heads=2,
                      dropout_rate=0.0, decoder_start_token_id=0)  # fmt: skip
    return T5ForConditionalGeneration(config), {"input_ids": IDS, "labels": IDS, "use_cache": False}


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(vocab_size=50, num_mel_bins=8, encoder_layers=1, decoder_layers=1,
                           encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
                           decoder_ffn_dim=24, d_model=16, max_source_positions=8, max_target_positions=16,
                           dropout=0.0, decoder_start_token_id=1,
                           pad_token_id=0, bos_token_id=1, eos_token_id=2)  # fmt: skip
    features = torch.linspace(-1, 1, 2 * 8 * 16).view(2, 8, 16)
    return WhisperForConditionalGeneration(config), {"input_features": features, "labels": IDS, "use_cache": False}


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.second, self.norm2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = F.relu(self.norm1(self.first(x)))
        x = F.relu(x + self.norm2(self.second(x)))
        return F.cross_entropy(self.head(F.max_pool2d(x, 2).mean((2, 3))), torch.arange(x.shape[0]) % 4)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.up = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x):
        first = F.silu(self.down(x))
        low = F.silu(self.norm(self.middle(F.avg_pool2d(first, 2))))
        return F.mse_loss(self.up(torch.cat([first, F.interpolate(low, scale_factor=2)], 1)), x)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 32), nn.Linear(8, 32)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 8)
        for step in x.unbind(1):
            i, f, g, o = (self.inner(step) + self.outer(h)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h.square().mean()


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(8, 8), nn.Linear(16, 8)

    def forward(self, x, source, target):
        messages = F.relu(self.message(x[source]))
        gathered = torch.zeros_like(x).index_add(0, target, messages)
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, torch.ones(target.shape[0])).clamp(min=1)
        return F.softplus(self.update(torch.cat([x, gathered / degree[:, None]], 1))).mean()


def resnet():
    return ResNet(), {"x": torch.linspace(-1, 1, 2 * 3 * 8 * 8).view(2, 3, 8, 8)}


def unet():
    return UNet(), {"x": torch.linspace(-1, 1, 3 * 8 * 8).view(1, 3, 8, 8)}


def lstm():
    return LSTM(), {"x": torch.linspace(-1, 1, 3 * 4 * 6).view(3, 4, 6)}


def graph_net():
    edges = torch.arange(12)
    return GraphNet(), {"x": torch.linspace(-1, 1, 40).view(5, 8), "source": edges % 5, "target": edges * 3 % 5}


MODELS = {
    model.__name__: model for model in (gpt2, llama, bert, vit, t5, whisper, resnet, unet, lstm, graph_net)
}  # fmt: skip
