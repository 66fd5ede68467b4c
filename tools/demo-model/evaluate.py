"""Accuracy by task on held-out prompts, of the weights that the GGUF file really holds, with greedy replies."""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import torch

import decode
import examples
import gguf_weights
import model as model_file
import pictures
import speech
import storage
import table
from batches import Tokens
from chat import call_text
from gguf_file import GgufFile
from media import Media
from talk import Conversation
from verdict import content, is_right


@dataclass
class Verdict:
    right: bool
    prompt: str
    wanted: str
    written: str


def run(checkpoint: Path, gguf: Path | None, speech_file: Path | None, out: Path, device: torch.device, scale: float = 1.0) -> dict:
    """Writes accuracy.json and mistakes.md, and returns the table."""
    started = time.monotonic()
    tokens = Tokens(checkpoint)
    clips = speech.Clips.load(speech_file) if speech_file else None
    model, media = model_file.load(checkpoint, tokens.tokenizer), Media(clips, device)
    if gguf is not None:
        numbers = tokens.tokenizer.get_vocab()
        if GgufFile(gguf).metadata["tokenizer.ggml.tokens"] != sorted(numbers, key=numbers.get):
            raise SystemExit(f"{gguf} has another vocabulary than {checkpoint}: the texts have changed since it was made")
        formats = gguf_weights.put_into(model, gguf)
        other = [f"{name}: {kind}" for name, kind in formats.items() if kind != storage.format_of(name, _dimensions(model, name))]
        print(f"weights of {gguf}: {len(formats)} tensors; {len(other)} in another format than trained for {other[:4]}", flush=True)
    model = model.to(device)
    torch.set_float32_matmul_precision("highest")

    tasks = examples.tests(scale)
    tasks["image"] = [Conversation([e]) for e in pictures.tests(max(8, round(400 * scale)))]
    if clips is not None:
        tasks["speech"] = [Conversation([e]) for e in speech.tests(clips, max(4, round(240 * scale)))]

    verdicts: dict[str, list[Verdict]] = {}
    for task, conversations in tasks.items():
        for name, verdict in _judge(task, conversations, model, tokens, media):
            verdicts.setdefault(name, []).append(verdict)
        print(f"{task}: {time.monotonic() - started:.0f} s", flush=True)

    counts = {name: {"right": sum(v.right for v in found), "of": len(found)} for name, found in verdicts.items()}
    result = {"file": gguf.name if gguf else "checkpoint", "bytes": gguf.stat().st_size if gguf else None, "tasks": counts, "required": list(table.REQUIRED)}
    out.mkdir(parents=True, exist_ok=True)
    (out / "accuracy.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (out / "mistakes.md").write_text(_mistakes(verdicts), encoding="utf-8")
    print(table.markdown(result))
    return result


def _dimensions(model, target: str) -> int:
    return next(tensor.dim() for name, (tensor, _) in model_file.stored_tensors(model).items() if name == target)


def _judge(task: str, conversations: list[Conversation], model, tokens: Tokens, media: Media):
    """Pairs of a task's name and a verdict. A request for a tool is judged twice: the call, and the answer after it."""
    prompts = [c.prompt() for c in conversations]
    replies = _replies(prompts, conversations, model, tokens, media)
    for entry, prompt, written in zip(conversations, prompts, replies):
        exchange = entry.exchanges[-1]
        name = exchange.task if task in ("image", "speech") else task
        if exchange.call is not None:
            wanted = call_text(exchange.call)
            yield name, Verdict(content(written, entry.think) == wanted, prompt, wanted, written)
        else:
            yield name, Verdict(is_right(written, entry), prompt, exchange.answer, written)
    after = [c for c in conversations if c.exchanges[-1].call is not None]
    if after:
        prompts = [c.prompt_after_tool() for c in after]
        for entry, prompt, written in zip(after, prompts, _replies(prompts, after, model, tokens, media)):
            answer = entry.exchanges[-1].answer
            yield f"{task}, answer", Verdict(content(written, entry.think, opened=True) == answer, prompt, answer, written)


def _replies(prompts: list[str], conversations: list[Conversation], model, tokens: Tokens, media: Media) -> list[str]:
    made = [decode.Prompt(tokens.encode(p), c.exchanges[0].medium) for p, c in zip(prompts, conversations)]
    return [tokens.decode(ids) for ids in decode.greedy(model, tokens, media, made)]


def _mistakes(verdicts: dict[str, list[Verdict]]) -> str:
    lines = ["# Mistakes on held-out prompts", ""]
    for name, found in verdicts.items():
        wrong = [v for v in found if not v.right]
        lines += [f"## {name}: {len(wrong)} of {len(found)}", ""]
        for verdict in wrong[:25]:
            prompt = re.sub(r"(<\|(image|audio)\|>)+", r"…", verdict.prompt)[-300:]
            lines += [f"- {prompt!r}", f"  wanted {verdict.wanted!r}", f"  written {verdict.written!r}"]
        lines.append("")
    return "\n".join(lines)
