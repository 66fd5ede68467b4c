"""What transformers writes with the file's own weights, in float32: the yardstick for the engine.

demo.refs.json has, for fifty prompts, the text, the token numbers, the greedy reply with the margin of every step (the distance
of the two best logits) and the answer that is wanted. The list `llama_cpp` of a prompt is left empty here; llama_cpp.py puts
llama.cpp's greedy token numbers there. demo.media.json and demo.media.safetensors have the same for
pictures and sounds, with the rows that the towers give; the pictures and sounds lie beside them as PNG and WAV.
"""

import hashlib
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

import examples
import files
import gguf_weights
import model as model_file
import pictures
import references
import speech
from batches import Tokens
from media import Media
from talk import Conversation, seeded

PROMPTS = 50
STEPS = 48


def run(checkpoint: Path, gguf: Path, speech_file: Path | None, out: Path, scale: float = 1.0) -> None:
    tokens = Tokens(checkpoint)
    clips = speech.Clips.load(speech_file) if speech_file else None
    # Always the CPU: float32 there is float32, and one prompt after the other has no shapes that others decide.
    media = Media(clips, torch.device("cpu"))
    model = model_file.load(checkpoint, tokens.tokenizer)
    gguf_weights.put_into(model, gguf)
    out.mkdir(parents=True, exist_ok=True)
    reference = f"transformers {transformers.__version__} on PyTorch {torch.__version__.split('+')[0]}, in float32, with the file's decoded weights"
    about = {"file": gguf.name, "sha256": hashlib.sha256(gguf.read_bytes()).hexdigest(), "reference": reference, "greedy_steps": STEPS}
    count = max(3, round(PROMPTS * scale))
    entries = [_text(model, tokens, name, conversation) for name, conversation in _choice(count)]
    references.write(out / "demo.refs.json", about, "prompts", entries)
    _media(model, tokens, media, clips, about, out)


def _choice(count: int) -> list[tuple[str, Conversation]]:
    """A fixed choice over all tasks, in turns, none twice; the first is the one that everybody tries."""
    tests, random_source = examples.tests(), seeded("goldens")
    first = examples.arithmetic.exchange(7, 5, "+", "What is 7 + 5?")
    chosen = [("sum", Conversation([first])), ("sum, thinking", Conversation([first], think=True))]
    prompts = {conversation.prompt() for _, conversation in chosen}
    names = sorted(tests)
    while len(chosen) < count:
        name = names[len(chosen) % len(names)]
        conversation = random_source.choice(tests[name])
        if conversation.prompt() not in prompts:
            prompts.add(conversation.prompt())
            chosen.append((name, conversation))
    return chosen


@torch.no_grad()
def _greedy(model, ids: list[int], stops: list[int], inputs: dict) -> tuple[list[int], list[float]]:
    """Token numbers and margins; the token that ends the reply is the last."""
    written, margins = [], []
    output = model(input_ids=torch.tensor([ids]), use_cache=True, **inputs)
    for _ in range(STEPS):
        best = output.logits[0, -1].topk(2)
        written.append(best.indices[0].item())
        margins.append(round((best.values[0] - best.values[1]).item(), 4))
        if written[-1] in stops:
            break
        output = model(input_ids=torch.tensor([written[-1:]]), past_key_values=output.past_key_values, use_cache=True)
    return written, margins


def _text(model, tokens: Tokens, name: str, conversation: Conversation) -> dict:
    prompt = conversation.prompt()
    ids = tokens.encode(prompt)
    written, margins = _greedy(model, ids, tokens.stops, {})
    return {"task": name, "prompt": prompt, "ids": ids, "greedy": written, "margins": margins, "text": tokens.decode(written), "wanted": conversation.exchanges[-1].answer, "llama_cpp": []}


@torch.no_grad()
def _media(model, tokens: Tokens, media: Media, clips, about: dict, out: Path) -> None:
    # A small picture for each kind of question, and a large one; a digit, another word, and two words.
    exchanges = pictures.tests(4, pictures.SMALL_GRIDS[:1]) + pictures.tests(1, pictures.LARGE_GRIDS[:1])
    if clips is not None:
        spoken = speech.tests(clips, len(speech.WORDS))
        exchanges += [spoken[0], spoken[len(speech.DIGITS)], spoken[-1]]
    entries, rows = [], {}
    for number, exchange in enumerate(exchanges):
        entry, name = exchange.medium.content, f"demo-{exchange.medium.kind}-{number}"
        if exchange.medium.kind == "image":
            drawn = media.draw([entry])
            path = out / f"{name}.png"
            path.write_bytes(files.png(drawn[0].numpy()))
            inputs = media.patches(drawn.float())
            soft = torch.cat(list(model.get_image_features(inputs["pixel_values"], inputs["image_position_ids"]).pooler_output))
        else:
            waveform = media.play([entry])
            path = out / f"{name}.wav"
            files.write_wav(path, waveform[0].numpy())
            inputs = media.sounds([entry])
            soft = model.model.get_audio_features(inputs["input_features"], inputs["input_features_mask"]).pooler_output[0]
        conversation = Conversation([exchange])
        ids = tokens.encode(conversation.prompt())
        written, margins = _greedy(model, ids, tokens.stops, inputs)
        rows[f"{name}.rows"] = soft.float().contiguous()
        entries.append({"file": path.name, "rows": len(soft), "prompt": exchange.question, "ids": ids, "greedy": written, "margins": margins, "text": tokens.decode(written), "wanted": exchange.answer})
    save_file(rows, out / "demo.media.safetensors")
    references.write(out / "demo.media.json", about, "media", entries)
