#!/usr/bin/env python3
"""Makes the demo model: texts, training, file, accuracy, references, card.

    make.py [--out FOLDER] [--minutes 12] [--rullama PATH] [--speech FILE]    all of it, on one GPU
    make.py --rehearse                                                       the same in small, on a CPU
    make.py STAGE …                                                          one stage: speech, vocabulary, train, export,
                                                                             evaluate, goldens, card

Stages find what earlier ones left in the folder. `speech` needs espeak-ng and sox and can be done on another machine: give the
file by --speech then.
"""

import argparse
import dataclasses
import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("speech", "vocabulary", "train", "export", "evaluate", "goldens", "card")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", nargs="*", choices=(*STAGES, "all"), default="all", help="what to do; everything unless told")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "demo-model", help="the folder for everything that is made; target/demo-model unless told")
    parser.add_argument("--minutes", type=float, default=12, help="how long to train")
    parser.add_argument("--pause-after", type=float, metavar="MINUTES", help="end after so many minutes of training; the same command then goes on")
    parser.add_argument("--steps", type=int, help="train that many steps instead")
    parser.add_argument("--rehearse", action="store_true", help="little of everything, to see that every part works")
    parser.add_argument("--speech", type=Path, help="the recorded words, if they were made before")
    parser.add_argument("--no-speech", action="store_true", help="without sounds, where there is neither espeak-ng nor a file")
    parser.add_argument("--rullama", default=str(ROOT / "target" / "release" / "rullama"), help="the program whose `convert` writes the file; the project's release build unless told")
    parser.add_argument("--vocabulary", type=Path, default=ROOT / "testdata" / "tokenizer" / "gemma4-vocab.gguf", help="the whole tokenizer")
    parser.add_argument("--gguf", type=Path, help="the file to evaluate; demo.gguf in the folder unless told")
    parser.add_argument("--compile", action="store_true", help="let PyTorch compile the decoder's layers")
    return parser.parse_args()


def main() -> None:
    # Texts are made by forked processes, whose tokenizers have nothing to share.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # Asking whether there is a GPU must not open it before they are forked.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    options = arguments()
    stages = STAGES if options.stage in ("all", ["all"], []) else options.stage
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    tokenizer, checkpoint = out / "tokenizer", out / "checkpoint"
    gguf = options.gguf or out / "demo.gguf"
    speech_file = None if options.no_speech else options.speech or out / "speech.npz"
    scale = 0.02 if options.rehearse else 1.0
    # Before minutes are spent on what comes first.
    if "export" in stages and not shutil.which(options.rullama):
        sys.exit(f"there is no {options.rullama}, which writes the file: `cargo build --release -p rullama` makes it")
    if "speech" in stages:
        _check_speech(speech_file)

    for stage in stages:
        started = time.monotonic()
        print(f"== {stage}", flush=True)
        if stage == "speech":
            _speech(speech_file, options.rehearse)
        elif stage == "vocabulary":
            import examples
            import vocabulary
            full = vocabulary.FullVocabulary(options.vocabulary)
            vocabulary.write(full, vocabulary.choose(full, examples.every_text()), tokenizer)
        elif stage == "train":
            import train
            plan = train.REHEARSAL if options.rehearse else dataclasses.replace(train.FULL, minutes=options.minutes, compile=options.compile)
            if options.steps:
                plan = dataclasses.replace(plan, steps=options.steps)
            plan = dataclasses.replace(plan, pause_after=options.pause_after)
            if not train.run(plan, tokenizer, speech_file, out, _device()):
                return
            (out / "device.txt").write_text(_device_name(), encoding="utf-8")
        elif stage == "export":
            import export
            export.run(checkpoint, gguf, options.rullama)
        elif stage == "evaluate":
            import evaluate
            import table
            weak = table.too_weak(evaluate.run(_checkpoint(checkpoint, tokenizer, gguf), gguf, speech_file, out, _device(), scale))
            if weak and not options.rehearse:
                sys.exit(f"below nine in ten: {', '.join(weak)}")
        elif stage == "goldens":
            import goldens
            goldens.run(_checkpoint(checkpoint, tokenizer, gguf), gguf, speech_file, out / "goldens", scale)
        elif stage == "card":
            import card
            device = (out / "device.txt").read_text(encoding="utf-8") if (out / "device.txt").exists() else "one GPU"
            card.write(gguf, out / "accuracy.json", out / "README.md", options.minutes, device)
        print(f"== {stage}: {time.monotonic() - started:.0f} s", flush=True)


def _check_speech(path: Path | None) -> None:
    if path is None or path.exists() or (shutil.which("espeak-ng") and shutil.which("sox")):
        return
    sys.exit("espeak-ng and sox are needed to record words: install them, or give recorded words by --speech, or --no-speech")


def _speech(path: Path | None, small: bool) -> None:
    import speech
    if path is None:
        return
    if path.exists():
        return print(f"{path} is there")
    speech.record(*(6, 2) if small else (84, 12)).save(path)
    print(f"{path}: {path.stat().st_size:,} bytes")


def _checkpoint(checkpoint: Path, tokenizer: Path, gguf: Path) -> Path:
    """The checkpoint; where only the file is left, a folder with the file's own tokenizer: the weights are the file's anyway."""
    if (checkpoint / "tokenizer.json").exists():
        return checkpoint
    if not (tokenizer / "tokenizer.json").exists():
        import vocabulary
        full = vocabulary.FullVocabulary(gguf)
        vocabulary.write(full, full.tokens, tokenizer)
    return tokenizer


def _device():
    import torch
    if torch.cuda.is_available():
        return torch.device("cuda")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    return torch.device("cpu")


def _device_name() -> str:
    import torch
    return f"one {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "a CPU"


if __name__ == "__main__":
    main()
