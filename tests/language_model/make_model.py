"""Writes a language model of some kilobytes: a table that says which character follows which.

Its one embedding per token is a unit vector, its one layer adds nothing, and its output matrix is the table. A grammar of
the server leaves, of the characters in the order of the table, the first one that the JSON schema allows.
"""
import sys

import gguf
import numpy as np

BYTES = [f"<0x{byte:02X}>".encode() for byte in range(256)]
SPACE = "\u2581".encode()
CHARACTERS = [SPACE] + [bytes([code]) for code in range(33, 127)]
TOKENS = [b"<unk>", b"<s>", b"</s>"] + BYTES + CHARACTERS
KINDS = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
KINDS += [gguf.TokenType.NORMAL] * len(CHARACTERS)
END = 2

# What follows a character, the best first; "$" is the end of the answer.
FOLLOWS = {
    " ": "y", "y": "e", "e": "s", "s": ".", ".": '$"', '"': "y:}],", ":": '1"[{', "[": '{"]', "{": '"', "}": "],}$",
    "]": "},$", "1": ",}",
}


def token(character):
    return END if character == "$" else len(TOKENS) - len(CHARACTERS) + (0 if character == " " else ord(character) - 32)


def main(path):
    size = len(TOKENS) + (-len(TOKENS)) % 32
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(size)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(size)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(KINDS)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(
        "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "
    )
    follows = np.zeros((len(TOKENS), size), np.float32)
    for before, after in FOLLOWS.items():
        for rank, character in enumerate(after):
            follows[token(character), token(before)] = 10 - rank
    for before in range(len(TOKENS)):
        # Nothing comes of bytes; where nothing of the table is allowed, a letter is better than no text.
        follows[3:259, before] -= 5
    nothing = lambda *shape: np.zeros(shape, np.float32)
    tensors = {
        "token_embd": np.eye(len(TOKENS), size, dtype=np.float32),
        "output": follows,
        "output_norm": np.ones(size, np.float32),
        "blk.0.attn_norm": np.ones(size, np.float32),
        "blk.0.ffn_norm": np.ones(size, np.float32),
        "blk.0.ffn_gate": nothing(32, size),
        "blk.0.ffn_up": nothing(32, size),
        "blk.0.ffn_down": nothing(size, 32),
    }
    tensors |= {f"blk.0.attn_{name}": nothing(size, size) for name in ("q", "k", "v", "output")}
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
