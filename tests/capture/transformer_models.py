"""Small models of Hugging Face's transformers with random weights: name -> how to make one and what to call it with."""

import torch
import transformers as t

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
TEXT = dict(SIZES, vocab_size=99)
GROUPED = dict(TEXT, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0)
POSITIONS = dict(TEXT, max_position_embeddings=64)
IMAGE = dict(SIZES, image_size=32, patch_size=8)
EXPERTS = dict(GROUPED, num_experts=4, num_experts_per_tok=2)
SEQUENCES = dict(
    d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=99,
)  # fmt: skip


def ids(*shape):
    return torch.randint(3, 99, shape or (2, 7))


def text(model, config, **inputs):
    return lambda: (model(config()), (), {"input_ids": ids(), **{name: make() for name, make in inputs.items()}})


def image(model, config, size=32):
    return lambda: (model(config()), (), {"pixel_values": torch.randn(2, 3, size, size)})


def whisper():
    config = t.WhisperConfig(
        **SEQUENCES, max_source_positions=20, max_target_positions=30, num_mel_bins=8, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    inputs = dict(input_features=torch.randn(2, 8, 40), decoder_input_ids=ids(2, 5))
    return t.WhisperForConditionalGeneration(config), (), inputs


def clip():
    words = dict(TEXT, max_position_embeddings=32, bos_token_id=1, eos_token_id=2)
    config = t.CLIPConfig(text_config=words, vision_config=dict(IMAGE, projection_dim=16), projection_dim=16)
    tokens = ids()
    tokens[:, -1] = 2
    return t.CLIPModel(config), (), dict(input_ids=tokens, pixel_values=torch.randn(2, 3, 32, 32))


def padding():
    return torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])


class Decode(torch.nn.Module):
    """Greedy decoding with a cache, token by token."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        out = self.model(input_ids=tokens, use_cache=True)
        found = []
        for _ in range(3):
            token = out.logits[:, -1:].argmax(-1)
            found.append(token)
            out = self.model(input_ids=token, past_key_values=out.past_key_values, use_cache=True)
        return torch.cat(found, dim=1), out.logits


def decoding(model, config):
    return lambda: (Decode(model(config())), (ids(),), {})


llama = lambda: t.LlamaConfig(**GROUPED)
gpt2 = lambda: t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99)
bert = lambda: t.BertConfig(**TEXT)
t5 = lambda: t.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99, decoder_start_token_id=0)

#: captured as one graph
ONE_GRAPH = {
    # encoders
    "bert": text(t.BertModel, bert),
    "bert_classes": text(
        t.BertForSequenceClassification,
        lambda: t.BertConfig(**TEXT, problem_type="single_label_classification"),
        labels=lambda: torch.tensor([0, 1]),
    ),
    "bert_masked": text(t.BertForMaskedLM, bert, attention_mask=padding, labels=ids),
    "roberta": text(t.RobertaModel, lambda: t.RobertaConfig(**POSITIONS)),
    "albert": text(t.AlbertModel, lambda: t.AlbertConfig(**TEXT, embedding_size=16)),
    "electra": text(t.ElectraModel, lambda: t.ElectraConfig(**TEXT, embedding_size=16)),
    "mpnet": text(t.MPNetModel, lambda: t.MPNetConfig(**POSITIONS)),
    "deberta": text(
        t.DebertaV2Model,
        lambda: t.DebertaV2Config(**POSITIONS, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    ),
    "xlnet": text(
        t.XLNetModel, lambda: t.XLNetConfig(d_model=32, n_layer=2, n_head=4, d_inner=48, vocab_size=99)
    ),
    "funnel": text(
        t.FunnelModel,
        lambda: t.FunnelConfig(
            d_model=32, n_head=4, d_head=8, d_inner=48, vocab_size=99, block_sizes=[1, 1], num_decoder_layers=1
        ),
    ),
    # decoders
    "gpt2": text(t.GPT2LMHeadModel, gpt2),
    "llama": text(t.LlamaForCausalLM, llama),
    "llama_padded": text(t.LlamaForCausalLM, llama, attention_mask=padding, labels=ids),
    "llama_tuple": text(t.LlamaForCausalLM, llama, return_dict=lambda: False),
    "mistral": text(t.MistralForCausalLM, lambda: t.MistralConfig(**GROUPED)),
    "qwen2": text(t.Qwen2ForCausalLM, lambda: t.Qwen2Config(**GROUPED)),
    "qwen3": text(t.Qwen3ForCausalLM, lambda: t.Qwen3Config(**GROUPED, head_dim=8)),
    "gemma2": text(t.Gemma2ForCausalLM, lambda: t.Gemma2Config(**GROUPED, head_dim=8)),
    "phi": text(t.PhiForCausalLM, lambda: t.PhiConfig(**{**GROUPED, "num_key_value_heads": 4})),
    "neox": text(t.GPTNeoXForCausalLM, lambda: t.GPTNeoXConfig(**TEXT)),
    "falcon": text(
        t.FalconForCausalLM,
        lambda: t.FalconConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=99),
    ),
    "opt": text(
        t.OPTForCausalLM,
        lambda: t.OPTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, vocab_size=99,
            max_position_embeddings=64, word_embed_proj_dim=32,
        ),
    ),
    # mixtures of experts, state spaces
    "mixtral": text(
        t.MixtralForCausalLM, lambda: t.MixtralConfig(**GROUPED, num_local_experts=4, num_experts_per_tok=2)
    ),
    "olmoe": text(t.OlmoeForCausalLM, lambda: t.OlmoeConfig(**EXPERTS)),
    "qwen2_moe": text(
        t.Qwen2MoeForCausalLM,
        lambda: t.Qwen2MoeConfig(**EXPERTS, moe_intermediate_size=16, shared_expert_intermediate_size=16),
    ),
    "mamba2": text(
        t.Mamba2ForCausalLM,
        lambda: t.Mamba2Config(
            hidden_size=32, state_size=4, num_hidden_layers=2, vocab_size=99, num_heads=8, head_dim=8, n_groups=2,
            chunk_size=4,
        ),
    ),
    # encoder-decoders, speech, pictures with text
    "t5": text(t.T5ForConditionalGeneration, t5, decoder_input_ids=lambda: ids(2, 5)),
    "bart": text(
        t.BartForConditionalGeneration,
        lambda: t.BartConfig(**SEQUENCES, max_position_embeddings=64),
        decoder_input_ids=lambda: ids(2, 5),
    ),
    "whisper": whisper,
    "clip": clip,
    # pictures
    "vit": image(t.ViTForImageClassification, lambda: t.ViTConfig(**IMAGE)),
    "beit": image(t.BeitModel, lambda: t.BeitConfig(**IMAGE)),
    "swin": image(
        t.SwinModel,
        lambda: t.SwinConfig(
            image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4
        ),
    ),
    "resnet": image(
        t.ResNetForImageClassification,
        lambda: t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
    ),
    "convnext": image(
        t.ConvNextModel, lambda: t.ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1])
    ),
    "segformer": image(
        t.SegformerModel,
        lambda: t.SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], num_attention_heads=[1, 2],
            patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2],
        ),
    ),
    # decoding with a cache
    "llama_decoding": decoding(t.LlamaForCausalLM, llama),
    "gpt2_decoding": decoding(t.GPT2LMHeadModel, gpt2),
}  # fmt: skip

#: captured in several graphs: branches on tensors, operators of their own, messages
SEVERAL_GRAPHS = {
    "bloom": text(t.BloomForCausalLM, lambda: t.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=99)),
    "llama_dynamic_rope": text(
        t.LlamaForCausalLM,
        lambda: t.LlamaConfig(**GROUPED, rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=1e4)),
    ),
    "llama_hidden_states": text(t.LlamaForCausalLM, llama, output_hidden_states=lambda: True),
    "longformer": text(t.LongformerModel, lambda: t.LongformerConfig(**POSITIONS, attention_window=4)),
    "mamba": text(
        t.MambaForCausalLM,
        lambda: t.MambaConfig(hidden_size=32, state_size=4, num_hidden_layers=2, vocab_size=99),
    ),
}
