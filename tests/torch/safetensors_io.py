# SPDX-License-Identifier: Apache-2.0
"""Tensors in files: the safetensors format, as far as the tests use it.

A file is an 8-byte little-endian length, a JSON header of that length, then raw little-endian data. The header maps
each name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted from the end of the header.
"""
import json
import math
import struct

import numpy
import torch

NUMPY_TYPES = {"F32": "<f4", "I32": "<i4", "U8": "u1"}
DTYPES = {torch.float32: "F32", torch.int32: "I32", torch.int64: "I32", torch.uint8: "U8"}


def read(path):
    """Name -> tensor. I32 becomes int64, which is what torch wants of indices."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
    except (struct.error, ValueError) as error:
        raise ValueError(f"{path} is no safetensors file: {error}") from error
    header.pop("__metadata__", None)
    data = content[8 + length :]
    return {name: _tensor(path, name, entry, data) for name, entry in header.items()}


def write(path, tensors):
    """Writes name -> tensor. int64 is stored as I32."""
    header, pieces, offset = {}, [], 0
    for name, tensor in tensors.items():
        dtype = DTYPES[tensor.dtype]
        piece = tensor.detach().contiguous().numpy().astype(NUMPY_TYPES[dtype], copy=False).tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(piece)]}
        pieces.append(piece)
        offset += len(piece)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the format asks for aligned data
    with open(path, "wb") as file:
        file.writelines([struct.pack("<Q", len(text)), text, *pieces])


def _tensor(path, name, entry, data):
    if entry["dtype"] not in NUMPY_TYPES:
        raise ValueError(f"{path}: {name} has dtype {entry['dtype']}: use one of {', '.join(NUMPY_TYPES)}")
    kind = numpy.dtype(NUMPY_TYPES[entry["dtype"]])
    begin, end = entry["data_offsets"]
    count = math.prod(entry["shape"])
    if not 0 <= begin <= end <= len(data) or end - begin != count * kind.itemsize:
        raise ValueError(f"{path}: {name} of shape {entry['shape']} is not the bytes {begin} to {end} of {len(data)}")
    values = numpy.frombuffer(data, kind, count, begin).reshape(entry["shape"])
    return torch.from_numpy(values.astype(numpy.int64 if entry["dtype"] == "I32" else kind))
