"""The weights of a GGUF file in a model of transformers: what the file really holds, decoded to float32."""

from pathlib import Path

import numpy as np
import torch

from gguf_file import GgufFile
from names import gguf_name


def put_into(model, path: Path) -> dict[str, str]:
    """Overwrites the model's tensors by the file's. Returns the format of each tensor, by its name in the file."""
    file = GgufFile(path)
    formats = {}
    with torch.no_grad():
        for name, tensor in model.state_dict(keep_vars=True).items():
            target = gguf_name(name)
            if target is None:
                continue
            stored = file.tensors[target]
            formats[target] = stored.format
            values = torch.from_numpy(_as_transformers(target, np.array(stored.values())))
            if values.numel() != tensor.numel():
                raise ValueError(f"{target} has {tuple(values.shape)}; {name} needs {tuple(tensor.shape)}")
            tensor.data.copy_(values.reshape(tensor.shape))
    return formats


def _as_transformers(name: str, values: np.ndarray) -> np.ndarray:
    if name == "v.patch_embd.weight":
        # The file has channel, row, column; transformers row, column, channel.
        values = np.ascontiguousarray(values.reshape(-1, 3, 16, 16).transpose(0, 2, 3, 1))
    if name.endswith("per_dim_scale.weight"):
        # The file has it after softplus.
        wide = values.astype(np.float64)
        values = (wide + np.log(-np.expm1(-wide))).astype(np.float32)
    return values
