"""Writes a GGUF file: version 3, Q8_0 and F32 tensors."""
import struct

import numpy as np

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}
TENSOR_F32, TENSOR_Q8_0 = 0, 8
BLOCK = 32


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, item):
    if kind == STRING:
        return string(item)
    if kind == ARRAY:
        element, items = item
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, i) for i in items)
    return struct.pack(SCALARS[kind], item)


def quantise_q8_0(weight):
    """Blocks of 32: an f16 scale, then 32 signed bytes."""
    blocks = weight.reshape(-1, BLOCK).astype(np.float32)
    scale = np.abs(blocks).max(1, keepdims=True) / 127
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    quants = np.round(blocks * inverse).astype(np.int8)
    return np.concatenate((scale.astype("<f2").view(np.uint8), quants.view(np.uint8)), 1).tobytes()


def encode_tensor(weight):
    if weight.ndim == 1:
        return TENSOR_F32, weight.astype("<f4").tobytes()
    return TENSOR_Q8_0, quantise_q8_0(weight)


def pad(data):
    return data + bytes(-len(data) % ALIGNMENT)


def write(path, keys, tensors):
    """keys: [(name, kind, value)], tensors: {name: array}, innermost dimension last."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, kind, item in keys:
        head += string(name) + struct.pack("<I", kind) + value(kind, item)
    body = b""
    for name, weight in tensors.items():
        kind, data = encode_tensor(weight)
        dims = weight.shape[::-1]
        head += string(name) + struct.pack("<I%dQ" % len(dims), len(dims), *dims) + struct.pack("<IQ", kind, len(body))
        body += pad(data)
    with open(path, "wb") as out:
        out.write(pad(head) + body)
