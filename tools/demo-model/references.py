"""Files of references: what they are about, and a list with one entry to a line."""

import json
from pathlib import Path


def write(path: Path, about: dict, name: str, entries: list[dict]) -> None:
    lines = [f" {_json(key)}: {_json(value)},\n" for key, value in about.items()]
    listed = ",\n".join(f"  {_json(entry)}" for entry in entries)
    path.write_text("{\n" + "".join(lines) + f' {_json(name)}: [\n{listed}\n ]\n}}\n', encoding="utf-8")


def read(path: Path, name: str) -> tuple[dict, list[dict]]:
    about = json.loads(path.read_text(encoding="utf-8"))
    return about, about.pop(name)


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False)
