"""Fills in the model card."""

import hashlib
import json
import math
from collections import Counter
from pathlib import Path

import table
from gguf_file import GgufFile

TEMPLATE = Path(__file__).parent / "card.md"


def write(gguf: Path, accuracy: Path, path: Path, minutes: float, device: str) -> None:
    file = GgufFile(gguf)
    formats, parameters = Counter(), 0
    for tensor in file.tensors.values():
        count = math.prod(tensor.shape)
        formats[tensor.format] += count
        parameters += count
    shares = ", ".join(f"{kind} {100 * count / parameters:.0f} %" for kind, count in formats.most_common())
    text = TEMPLATE.read_text(encoding="utf-8")
    filled = {
        "bytes": f"{gguf.stat().st_size:,}", "sha256": hashlib.sha256(gguf.read_bytes()).hexdigest(), "parameters": f"{parameters:,}", "formats": shares,
        "table": table.markdown(json.loads(accuracy.read_text(encoding="utf-8"))), "minutes": f"{minutes:.0f}", "device": device,
    }
    for name, value in filled.items():
        text = text.replace("{" + name + "}", value)
    path.write_text(text, encoding="utf-8")
