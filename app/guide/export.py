"""From a checkpoint of train.py to guide.gguf."""
import os
import sys

import torch

import corpus
import gguf
import subwords

TEMPLATE = open(os.path.join(corpus.HERE, "template.jinja")).read()
SHARPNESS = 2  # its scores are so many times as far apart as learnt: it recites, and shall at the default temperature too


def keys_of(config, vocabulary):
    head_size = config["n_embd"] // config["n_head"]
    ids = {piece: i for i, piece in enumerate(vocabulary["pieces"])}
    return [
        ("general.architecture", gguf.STRING, "llama"),
        ("general.name", gguf.STRING, "confab guide"),
        ("general.file_type", gguf.U32, 7),  # mostly Q8_0
        ("general.description", gguf.STRING, "Knows confab and nothing else; trained by the project on its own text"),
        ("general.license", gguf.STRING, "GPL-3.0-or-later"),
        ("llama.context_length", gguf.U32, config["n_context"]),
        ("llama.embedding_length", gguf.U32, config["n_embd"]),
        ("llama.block_count", gguf.U32, config["n_layer"]),
        ("llama.feed_forward_length", gguf.U32, config["n_ff"]),
        ("llama.attention.head_count", gguf.U32, config["n_head"]),
        ("llama.attention.head_count_kv", gguf.U32, config["n_head_kv"]),
        ("llama.attention.layer_norm_rms_epsilon", gguf.F32, config["epsilon"]),
        ("llama.rope.dimension_count", gguf.U32, head_size),
        ("llama.rope.freq_base", gguf.F32, config["rope_base"]),
        ("llama.vocab_size", gguf.U32, len(vocabulary["pieces"])),
        ("tokenizer.ggml.model", gguf.STRING, "llama"),
        ("tokenizer.ggml.tokens", gguf.ARRAY, (gguf.STRING, vocabulary["pieces"])),
        ("tokenizer.ggml.scores", gguf.ARRAY, (gguf.F32, vocabulary["scores"])),
        ("tokenizer.ggml.token_type", gguf.ARRAY, (gguf.I32, vocabulary["types"])),
        ("tokenizer.ggml.unknown_token_id", gguf.U32, ids["<unk>"]),
        ("tokenizer.ggml.bos_token_id", gguf.U32, ids["<s>"]),
        ("tokenizer.ggml.eos_token_id", gguf.U32, ids["<|im_end|>"]),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, False),
        ("tokenizer.ggml.add_eos_token", gguf.BOOL, False),
        ("tokenizer.ggml.add_space_prefix", gguf.BOOL, False),
        ("tokenizer.chat_template", gguf.STRING, TEMPLATE),
    ]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: export.py CHECKPOINT OUT.gguf")
    checkpoint = torch.load(sys.argv[1])
    weights = subwords.Subwords(checkpoint["vocabulary"]["pieces"]).applied(checkpoint["weights"])
    tensors = {name: weight.float().numpy() for name, weight in weights.items()}
    tensors["output_norm.weight"] *= SHARPNESS
    gguf.write(sys.argv[2], keys_of(checkpoint["config"], checkpoint["vocabulary"]), tensors)


if __name__ == "__main__":
    main()
