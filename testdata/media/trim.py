"""Cuts the references of the towers down to what the tests read: `python trim.py FIXTURES` writes the `tiny-*` files beside it.

FIXTURES has, for each model, `NAME.mm.safetensors` (values of the towers) and `NAME.e2e.json` and `.safetensors` (prompts
with media, read by the whole model), made with transformers as README.md says.
"""

import json
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent

VALUES = {
    "tiny-12b": [
        "image70.dense_out_first4",
        "image70.normed_first4",
    ],
}
PROMPTS = {"tiny-12b": ["image70", "audio"]}
KEPT = ["name", "ids", "runs", "argmax", "margins", "hf_greedy", "hf_greedy_margins"]
ROWS = ["logits_last8", "logits_at_run_ends", "soft_rows0"]


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {
        name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def write(path, tensors):
    header, body = {}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main(fixtures):
    for model, names in VALUES.items():
        values = read(fixtures / "multimodal" / f"{model}.mm.safetensors")
        kept = {name: values[name] for name in names}
        rows = read(fixtures / "multimodal" / f"{model}.e2e.safetensors")
        prompts = json.loads((fixtures / "multimodal" / f"{model}.e2e.json").read_text())["prompts"]
        prompts = [prompt for prompt in prompts if prompt["name"] in PROMPTS[model]]
        for prompt in prompts:
            for part in ROWS:
                name = f"{prompt['name']}.{part}"
                if name in rows:
                    kept[name] = rows[name]
        write(HERE / f"{model}.safetensors", kept)
        kept = [{key: prompt[key] for key in KEPT} for prompt in prompts]
        (HERE / f"{model}.json").write_text(json.dumps({"prompts": kept}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
