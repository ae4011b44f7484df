"""Reads and writes the GGUF files that this folder makes: version 3, Q8_0 and F32 tensors."""
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


def dequantise_q8_0(data, count):
    blocks = np.frombuffer(data, np.uint8).reshape(count // BLOCK, 2 + BLOCK)
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    return (scale * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)).reshape(-1)


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


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        items = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return items if len(items) > 1 else items[0]

    def string(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.take("IQ")
            return [self.value(element) for _ in range(count)]
        return self.take(SCALARS[kind][1:])


def read(path):
    """The keys {name: value} and tensors {name: float32 array} of a file written by write()."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    magic, _, n_tensors, n_keys = reader.take("4sIQQ")
    if magic != b"GGUF":
        raise ValueError("%s: not a GGUF file" % path)
    keys = {}
    for _ in range(n_keys):
        name = reader.string()
        keys[name] = reader.value(reader.take("I"))
    directory = []
    for _ in range(n_tensors):
        name = reader.string()
        n_dims = reader.take("I")
        dims = [reader.take("Q") for _ in range(n_dims)]
        directory.append((name, dims, *reader.take("IQ")))
    start = reader.at + -reader.at % ALIGNMENT
    return keys, {name: read_tensor(reader.data, start + offset, dims, kind) for name, dims, kind, offset in directory}


def read_tensor(data, offset, dims, kind):
    count = int(np.prod(dims))
    size = count * 4 if kind == TENSOR_F32 else count // BLOCK * (BLOCK + 2)
    part = data[offset:offset + size]
    flat = np.frombuffer(part, "<f4").copy() if kind == TENSOR_F32 else dequantise_q8_0(part, count)
    return flat.reshape(dims[::-1])
