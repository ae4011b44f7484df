"""The guide's network: a llama. Parameters are a dictionary by their GGUF names, so that export is a plain copy.

Rotary embeddings turn the pairs (2i, 2i+1), which is how files of the llama family have their Q and K rows.
"""
import math

import torch
import torch.nn.functional as F

CONFIG = {
    "n_embd": 256,
    "n_layer": 2,
    "n_head": 8,
    "n_head_kv": 8,
    "n_ff": 640,
    "n_context": 2048,
    "rope_base": 10000.0,
    "epsilon": 1e-5,
}
QUIET = 20.0  # so many times less than usual is what the layers before the last say at first: it learns before them
ROW_WEIGHTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def shapes(config, n_vocab):
    n, ff = config["n_embd"], config["n_ff"]
    kv = n // config["n_head"] * config["n_head_kv"]
    out = {"token_embd.weight": (n_vocab, n), "output_norm.weight": (n,), "output.weight": (n_vocab, n)}
    for layer in range(config["n_layer"]):
        sizes = {"attn_norm": (n,), "attn_q": (n, n), "attn_k": (kv, n), "attn_v": (kv, n), "attn_output": (n, n),
                 "ffn_norm": (n,), "ffn_gate": (ff, n), "ffn_up": (ff, n), "ffn_down": (n, ff)}
        out.update({"blk.%d.%s.weight" % (layer, name): size for name, size in sizes.items()})
    return out


def initial(config, n_vocab):
    weights = {}
    for name, shape in shapes(config, n_vocab).items():
        if len(shape) == 1:
            weight = torch.ones(shape)
        else:
            weight = torch.randn(shape) * 0.04
            if "attn_output" in name or "ffn_down" in name:
                weight /= math.sqrt(2 * config["n_layer"]) if "blk.%d." % (config["n_layer"] - 1) in name else QUIET
        weights[name] = weight
    return weights


def norm(x, weight, epsilon):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def rotations(config, count, device):
    half = config["n_embd"] // config["n_head"] // 2
    frequency = config["rope_base"] ** (-torch.arange(half, dtype=torch.float64, device=device) / half)
    angle = torch.arange(count, dtype=torch.float64, device=device)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x, rotation):
    """x: [batch, heads, rows, head_size]"""
    cos, sin = rotation
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


def attend(weights, config, layer, x, rotation, mask):
    batch, rows, n = x.shape
    heads, kv_heads = config["n_head"], config["n_head_kv"]

    def project(name, count):
        return F.linear(x, weights["blk.%d.%s.weight" % (layer, name)]).view(batch, rows, count, -1).transpose(1, 2)

    q, k, v = rotate(project("attn_q", heads), rotation), rotate(project("attn_k", kv_heads), rotation), project("attn_v", kv_heads)
    k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(n // heads) + mask
    out = (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(batch, rows, n)
    return F.linear(out, weights["blk.%d.attn_output.weight" % layer])


def feed(weights, layer, x):
    gate, up, down = (weights["blk.%d.ffn_%s.weight" % (layer, name)] for name in ("gate", "up", "down"))
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def hidden(weights, config, ids, wanted=None, dropout=0.0, first=0):
    """States [batch, rows, n_embd] before the output projection, or [n, n_embd] of those that wanted [batch, rows] marks.
    dropout: the share of the embeddings, and of what every block adds, that is left out, in training.
    first: the layers before this one are passed over."""
    rows = ids.shape[1]
    x = F.dropout(F.embedding(ids, weights["token_embd.weight"]), dropout)
    mask = torch.full((rows, rows), -1e9, device=ids.device).triu(1)
    rotation = rotations(config, rows, ids.device)
    for layer in range(first, config["n_layer"]):
        prefix = "blk.%d." % layer
        y = norm(x, weights[prefix + "attn_norm.weight"], config["epsilon"])
        x = x + F.dropout(attend(weights, config, layer, y, rotation, mask).float(), dropout)
        if wanted is not None and layer == config["n_layer"] - 1:
            x = x[wanted]
        y = norm(x, weights[prefix + "ffn_norm.weight"], config["epsilon"])
        x = x + F.dropout(feed(weights, layer, y).float(), dropout)
    return norm(x, weights["output_norm.weight"], config["epsilon"])


def logits(weights, states, pieces=None):
    """The scores of all pieces, or of those named."""
    output = weights["output.weight"]
    return F.linear(states, output if pieces is None else output[pieces])
