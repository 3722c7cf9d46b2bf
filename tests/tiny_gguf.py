"""Write a tiny LLaMA-style model with random weights, in llama.cpp's file format. Needs ``gguf`` and ``numpy``.

Run: python tests/tiny_gguf.py FILE

The vocabulary is that of bytes, ASCII characters, numbers of two digits and a few words: enough for a server to
tokenize any prompt and to answer with a number. The model is random but for one thing: it would rather write a number,
or end, than anything else, as a trained model does when it is asked for a number. So the numbers are among the most
probable tokens, whose probabilities the server tells.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np

WIDTH, HIDDEN, LAYERS, HEADS, CONTEXT = 64, 128, 2, 4, 8192


def write(path: str) -> None:
    """Write the model."""
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(0)

    control = [(b"<unk>", gguf.TokenType.UNKNOWN), (b"<s>", gguf.TokenType.CONTROL), (b"</s>", gguf.TokenType.CONTROL)]
    octets = [(f"<0x{byte:02X}>".encode(), gguf.TokenType.BYTE) for byte in range(256)]
    letters = [chr(code).encode() for code in range(33, 127)] + ["▁".encode()]
    numbers = [str(number).encode() for number in range(10, 17)]
    words = [word.encode() for word in ("the", "▁the", "image", "▁image", "text", "▁text", "▁of", "▁to")]
    normal = [(piece, gguf.TokenType.NORMAL) for piece in letters + numbers + words]
    tokens = [*control, *octets, *normal]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([piece for piece, _ in tokens])
    writer.add_token_scores([0.0 if kind != gguf.TokenType.NORMAL else -float(n) for n, (_, kind) in enumerate(tokens)])
    writer.add_token_types([int(kind) for _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(
        "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "
    )

    def add(name: str, *shape: int, first: float | np.ndarray | None = None) -> None:
        weights = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.4 / np.sqrt(shape[-1]), shape)
        if first is not None:
            weights[:, 0] = first
        writer.add_tensor(name, weights.astype(np.float32))

    # The first component of the residual stream is the same for every token; the output turns it into a bias.
    wanted = [piece.isdigit() or piece == b"</s>" for piece, _ in tokens]
    add("token_embd.weight", len(tokens), WIDTH, first=1.0)
    add("output_norm.weight", WIDTH)
    add("output.weight", len(tokens), WIDTH, first=np.where(wanted, 3.0, 0.0))
    for layer in range(LAYERS):
        add(f"blk.{layer}.attn_norm.weight", WIDTH)
        add(f"blk.{layer}.ffn_norm.weight", WIDTH)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{part}.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.ffn_gate.weight", HIDDEN, WIDTH)
        add(f"blk.{layer}.ffn_up.weight", HIDDEN, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
