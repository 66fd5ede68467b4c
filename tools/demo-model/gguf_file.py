"""Reads GGUF files: metadata, and tensors as float32; copies them without some tensors. Enough formats for the demo model's own file."""

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9

#: Number in the file: name, values and bytes of a block.
FORMATS = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 8: ("Q8_0", 32, 34), 12: ("Q4_K", 256, 144), 14: ("Q6_K", 256, 210), 30: ("BF16", 1, 2)}


@dataclass
class Tensor:
    format: str
    #: As PyTorch has it: the last extent varies fastest.
    shape: tuple[int, ...]
    bytes: np.ndarray

    def values(self) -> np.ndarray:
        return DECODE[self.format](self.bytes).reshape(self.shape)


class GgufFile:
    def __init__(self, path: Path):
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        magic, version, tensors, entries = self._unpack("<4sIQQ")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path} is no GGUF file of version 2 or 3")
        self._version, self._entries, first = version, entries, self._at
        self.metadata = {self._string(): self._value(self._unpack("<I")[0]) for _ in range(entries)}
        self._metadata_bytes = self._map[first: self._at]
        infos = []
        for _ in range(tensors):
            name = self._string()
            shape = self._unpack(f"<{self._unpack('<I')[0]}Q")
            infos.append((name, shape, *self._unpack("<IQ")))
        self._alignment = self.metadata.get("general.alignment", 32)
        start = self._at + self._padding(self._at)
        self.tensors = {}
        for name, shape, number, offset in infos:
            format, block, size = FORMATS[number]
            count = int(np.prod(shape)) // block * size
            raw = np.frombuffer(self._map, np.uint8, count, start + offset)
            self.tensors[name] = Tensor(format, tuple(reversed(shape)), raw)

    def copy(self, path: Path, keep: Callable[[str], bool]) -> None:
        """Writes a file with the same metadata and those tensors whose names are to be kept, byte for byte."""
        kept = {name: tensor for name, tensor in self.tensors.items() if keep(name)}
        numbers = {format: number for number, (format, _, _) in FORMATS.items()}
        head = struct.pack("<4sIQQ", b"GGUF", self._version, len(kept), self._entries) + self._metadata_bytes
        offset = 0
        for name, tensor in kept.items():
            encoded, extents = name.encode(), tuple(reversed(tensor.shape))
            head += struct.pack("<Q", len(encoded)) + encoded + struct.pack(f"<I{len(extents)}Q", len(extents), *extents)
            head += struct.pack("<IQ", numbers[tensor.format], offset)
            offset += tensor.bytes.size + self._padding(tensor.bytes.size)
        with open(path, "wb") as file:
            file.write(head + bytes(self._padding(len(head))))
            for tensor in kept.values():
                file.write(tensor.bytes.tobytes() + bytes(self._padding(tensor.bytes.size)))

    def _padding(self, size: int) -> int:
        return -size % self._alignment

    def _unpack(self, layout: str) -> tuple:
        values = struct.unpack_from(layout, self._map, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _string(self) -> str:
        (length,) = self._unpack("<Q")
        self._at += length
        return self._map[self._at - length: self._at].decode("utf-8", "replace")

    def _value(self, kind: int):
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            value = np.frombuffer(self._map, _SCALARS[kind], 1, self._at)[0]
            self._at += value.itemsize
            return value.item()
        inner, count = self._unpack("<IQ")
        if inner == _STRING:
            return [self._string() for _ in range(count)]
        values = np.frombuffer(self._map, _SCALARS[inner], count, self._at)
        self._at += values.nbytes
        return values.tolist()


def _half(raw: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def _q8_0(raw: np.ndarray) -> np.ndarray:
    blocks = raw.reshape(-1, 34)
    return _half(blocks[:, :2]) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)


def _q4_k(raw: np.ndarray) -> np.ndarray:
    blocks = raw.reshape(-1, 144)
    scale, least = _half(blocks[:, 0:2]), _half(blocks[:, 2:4])
    low, middle, high = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], 1)
    mins = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], 1)
    pairs = blocks[:, 16:].reshape(-1, 4, 1, 32)
    quants = np.concatenate([pairs & 15, pairs >> 4], 2).reshape(-1, 8, 32)
    return (scale * scales)[:, :, None] * quants - (least * mins)[:, :, None]


def _q6_k(raw: np.ndarray) -> np.ndarray:
    blocks = raw.reshape(-1, 210)
    low, high = blocks[:, :128].reshape(-1, 2, 2, 32), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    four = np.concatenate([low & 15, low >> 4], 2)
    two = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    quants = (four | two << 4).astype(np.int8) - 32
    return (_half(blocks[:, 208:]) * scales)[:, :, None] * quants.reshape(-1, 16, 16)


DECODE = {
    "F32": lambda raw: np.ascontiguousarray(raw).view("<f4"),
    "F16": _half,
    "BF16": lambda raw: (np.ascontiguousarray(raw).view("<u2").astype(np.uint32) << 16).view(np.float32),
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q6_K": _q6_k,
}
