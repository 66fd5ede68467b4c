"""The checkpoint as a GGUF file, by rullama's own converter."""

import subprocess
from pathlib import Path

from safetensors import safe_open

from names import gguf_name
from storage import format_of

LIMIT = 16_000_000


def run(checkpoint: Path, output: Path, rullama: str) -> None:
    command = [rullama, "convert", str(checkpoint), str(output), "--force", "--name", "rullama demo", "--format", "q4_k_m"]
    with safe_open(checkpoint / "model.safetensors", "pt") as file:
        for name in sorted(file.keys()):
            target = gguf_name(name)
            dimensions = len(file.get_slice(name).get_shape())
            if target is not None and dimensions >= 2:
                command += ["--tensor", f"{target}={format_of(target, dimensions).lower()}"]
    print(f"{' '.join(command[:8])} … and {(len(command) - 8) // 2} formats", flush=True)
    subprocess.run(command, check=True)
    size = output.stat().st_size
    print(f"{output}: {size:,} bytes")
    if size > LIMIT:
        raise SystemExit(f"the file has {size:,} bytes; {LIMIT:,} are allowed")
