"""Images and sounds as files."""

import struct
import wave
import zlib
from pathlib import Path

import numpy as np

import speech


def png(pixels: np.ndarray) -> bytes:
    height, width, _ = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(lines, 6)) + chunk(b"IEND", b"")


def write_wav(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, speech.RATE, 0, "NONE", ""))
        file.writeframes((samples * 32768).round().astype(np.int16).tobytes())
