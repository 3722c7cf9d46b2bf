"""Tiny decoders of many families, built from the config of each: its own layers, and windows that a test can cross."""

from __future__ import annotations

from typing import Any

#: Sizes by the names that configs have for them.
_SIZES: dict[str, Any] = {
    "vocab_size": 200, "hidden_size": 32, "n_embd": 32, "d_model": 32, "embedding_size": 32, "word_embed_proj_dim": 32,
    "intermediate_size": 64, "ffn_dim": 64, "ffn_hidden_size": 64, "d_ff": 64, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "num_hidden_layers": 4, "n_layer": 4, "num_layers": 4, "n_layers": 4,
    "num_attention_heads": 4, "n_head": 4, "num_heads": 4, "n_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "n_positions": 512, "max_position_embeddings": 512, "num_local_experts": 4, "num_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "rotary_dim": 8, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
#: Lists with a value for each layer: made anew for the number of layers.
_BY_LAYER = ("layer_types", "mlp_layer_types", "layers_block_type", "per_layer_config", "attention_layers")
#: How far back the layers with a window see here.
WINDOW = 24

_SLIDING = {"sliding_window": WINDOW}
#: Families that are read in packed rows; some have layers that see only a part.
PACKED: dict[str, dict[str, Any]] = {
    "cohere": {"logit_scale": 0.25}, "cohere2": _SLIDING, "falcon": {}, "gemma": {},
    "gemma2": {**_SLIDING, "final_logit_softcapping": 3.0}, "gemma3_text": _SLIDING, "glm4": {}, "gpt2": {},
    "gpt_bigcode": {}, "gpt_neox": {}, "gptj": {}, "granite": {"logits_scaling": 4.0}, "llama": {},
    "ministral": {**_SLIDING, "head_dim": 8}, "mistral": _SLIDING, "mixtral": {}, "olmo2": {}, "olmo3": _SLIDING,
    "opt": {}, "phi": {}, "phi3": _SLIDING, "qwen2": {**_SLIDING, "use_sliding_window": True, "max_window_layers": 0},
    "qwen3": {**_SLIDING, "use_sliding_window": True, "max_window_layers": 0}, "qwen3_moe": {}, "smollm3": {},
    "starcoder2": _SLIDING,
}  # fmt: skip
#: Some that read each prompt by itself: positions by bias, local windows, a state, the other direction.
ALONE: dict[str, dict[str, Any]] = {
    "bloom": {}, "mpt": {"max_seq_len": 512}, "falcon": {"alibi": True}, "mamba": {}, "jamba": {},
    "gpt_neo": {"window_size": WINDOW, "num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "modernbert-decoder": {}, "deepseek_v3": {"num_key_value_heads": 4},
}  # fmt: skip


def decoder(kind: str, more: dict[str, Any]) -> Any:
    """A decoder of a family, with larger random weights than usual, so that it matters what a token attends to."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    usual = AutoConfig.for_model(kind).get_text_config()
    told = {k: v for k, v in usual.to_dict().items() if k not in (*_BY_LAYER, "model_type", "transformers_version")}
    sizes = {name: size for name, size in _SIZES.items() if told.get(name) is not None}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(type(usual)(**{**told, **sizes, **more})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    return model
