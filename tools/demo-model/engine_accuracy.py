#!/usr/bin/env python3
"""Accuracy of the demo model's eyes and ears through the engine: rullama reads images and recordings that neither training nor
the tests have seen, as files, and its replies are compared with what was drawn and said.

    engine_accuracy.py [--rullama PATH] [--model MODEL] [--backend NAME] [--speech FILE] [--images 400] [--sounds 480] [--seed TEXT]

Needs NumPy and a release build of rullama; for recordings also espeak-ng and sox, or a file that `make.py speech` wrote. `--seed` draws
other images and other sounds. Ends with a table and an error if a task is below what its card promises.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import files
import pictures
import speech
import table
from talk import Conversation, Exchange
from verdict import is_right

ROOT = Path(__file__).resolve().parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rullama", type=Path, default=ROOT / "target" / "release" / "rullama", help="the program; the release build unless told")
    parser.add_argument("--model", default="demo", help="the model; the demo model unless told")
    parser.add_argument("--backend", default="cpu", help="what computes: cpu, gpu or reference")
    parser.add_argument("--speech", type=Path, help="recorded words; without it, espeak-ng says them")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--sounds", type=int, default=480, help="half of them with one word, half with two")
    parser.add_argument("--seed", default="", help="any text; another one gives other images and sounds")
    parser.add_argument("--at-once", type=int, default=2, help="programs that run at the same time")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    exchanges = pictures.tests(options.images, seed=options.seed)
    clips = None
    if options.sounds:
        clips = speech.Clips.load(options.speech) if options.speech else speech.record(0, 12)
        exchanges += speech.tests(clips, options.sounds // 2, seed=options.seed)
    right, of = Counter(), Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as pool:
        ask = lambda numbered: answer(options, Path(folder), clips, *numbered)
        for number, (exchange, written) in enumerate(zip(exchanges, pool.map(ask, enumerate(exchanges)))):
            of[exchange.task] += 1
            if is_right(written, Conversation([exchange])):
                right[exchange.task] += 1
            else:
                print(f"{exchange.task}: {exchange.question!r}: wanted {exchange.answer!r}, written {written!r}", flush=True)
            if number % 50 == 49:
                print(f"{number + 1} of {len(exchanges)}", file=sys.stderr, flush=True)
    result = {"tasks": {task: {"right": right[task], "of": of[task]} for task in sorted(of)}, "required": list(table.REQUIRED)}
    print(table.markdown(result))
    low = table.too_weak({**result, "required": [task for task in table.REQUIRED if task in of]})
    if low:
        sys.exit(f"below {100 * table.SHARE:.0f} %: {', '.join(low)}")


def answer(options: argparse.Namespace, folder: Path, clips: speech.Clips | None, number: int, exchange: Exchange) -> str:
    """What the engine writes about one image or sound, of which it gets the file."""
    entry = exchange.medium.content
    normal = lambda shape: np.random.default_rng(entry.seed).standard_normal(shape, dtype=np.float32)
    if exchange.medium.kind == "image":
        path = folder / f"{number}.png"
        drawn = pictures.add_noise(pictures.draw([entry], np), [entry], normal)
        path.write_bytes(files.png(drawn[0].round().astype(np.uint8)))
        attached = ["--image", path, "--budget", "70" if exchange.medium.rows <= 70 else "280"]
    else:
        path = folder / f"{number}.wav"
        files.write_wav(path, play(entry, clips, normal))
        attached = ["--audio", path]
    command = [options.rullama, "generate", options.model, "--backend", options.backend, "--prompt", exchange.question, *attached, "--think", "off", "--temperature", "0", "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    path.unlink()
    if done.returncode:
        sys.exit(f"{done.stderr.strip()}\n{' '.join(map(str, command))}")
    return json.loads(done.stdout)["text"]


def play(entry: speech.Sound, clips: speech.Clips, normal) -> np.ndarray:
    """The waveform, as media.py mixes it for training."""
    time, mixed = np.arange(entry.length, dtype=np.float32), np.zeros(entry.length, np.float32)
    for clip, start, speed in zip(entry.clips, entry.starts, entry.speeds):
        samples = clips.samples[clip]
        at = (time - start) * speed
        inside = (at >= 0) & (at < len(samples) - 1)
        mixed[inside] += np.interp(at[inside], np.arange(len(samples)), samples).astype(np.float32)
    shifted = np.concatenate([[np.float32(0)], mixed[:-1]])
    mixed = (mixed + entry.tilt * shifted) * entry.gain + normal(mixed.shape) * entry.noise
    return mixed.clip(-1, 32767 / 32768)


if __name__ == "__main__":
    main()
