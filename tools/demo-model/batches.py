"""Conversations as batches of token numbers: texts of similar length together, media of one shape together."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import tokenizers
import torch

import examples
import helper_heads
import manners
import pictures
import speech
from media import Media
from talk import Conversation, seeded

LENGTHS = (64, 96, 128, 192, 256, 384, 640, 1024)


class Tokens:
    """The tokenizer as training needs it."""

    def __init__(self, folder: Path):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.pad = self.tokenizer.token_to_id("<pad>")
        self.stops = [self.tokenizer.token_to_id(text) for text in ("<turn|>", "<|tool_response>", "<eos>")]

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def conversation(self, entry: Conversation) -> tuple[list[int], list[bool]]:
        """Token numbers, and which of them the model has to write."""
        ids, written = [], []
        for text, is_written in entry.segments():
            part = self.encode(text)
            ids += part
            written += [is_written] * len(part)
        return ids, written


@dataclass
class Batch:
    ids: torch.Tensor
    #: Numbers, counted through all rows, of the tokens whose next one is written by the model.
    places: torch.Tensor
    #: What the towers read, as the model takes it.
    media: dict[str, torch.Tensor]
    kind: str = "text"
    #: What pictures show, for the helper heads.
    shown: dict[str, torch.Tensor] | None = None


def _texts(job: tuple[str, int, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    folder, seed, count = job
    tokens, random_source = Tokens(Path(folder)), seeded("training", seed)
    made = (tokens.conversation(examples.conversation(random_source)) for _ in range(count))
    return [(np.array(ids, np.int16), np.array(written)) for ids, written in made]


def make_texts(folder: Path, count: int, workers: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training conversations as token numbers, with what is written. Done before a GPU is touched, because it forks."""
    jobs = [(str(folder), seed, min(2000, count - at)) for seed, at in enumerate(range(0, count, 2000))]
    return [entry for part in _in_parallel(_texts, jobs, workers) for entry in part]


def _in_parallel(work, jobs: list, workers: int) -> list:
    if workers < 2:
        return [work(job) for job in jobs]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(work, jobs))


class TextData:
    """All training texts, in memory of the device, as batches that have about the same number of tokens."""

    def __init__(self, made: list[tuple[np.ndarray, np.ndarray]], tokens_per_batch: int, device: torch.device, pad: int):
        self.groups = []
        self.tokens = sum(len(ids) for ids, _ in made)
        for low, high in zip((0, *LENGTHS), LENGTHS):
            chosen = [(ids, written) for ids, written in made if low < len(ids) <= high]
            if not chosen:
                continue
            ids = np.full((len(chosen), high), pad, np.int16)
            written = np.zeros((len(chosen), high), bool)
            for row, (own, mask) in enumerate(chosen):
                ids[row, : len(own)], written[row, : len(own)] = own, mask
            self.groups.append((torch.from_numpy(ids).to(device), written, max(1, tokens_per_batch // high)))
        self.dropped = sum(len(ids) > LENGTHS[-1] for ids, _ in made)
        self.device = device
        self.random = seeded("text order")
        self.queue: list = []

    def next(self) -> Batch:
        if not self.queue:
            for group, (ids, _, rows) in enumerate(self.groups):
                order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(self.random.getrandbits(31)))
                self.queue += [(group, part) for part in order.split(rows)]
            self.random.shuffle(self.queue)
        group, rows = self.queue.pop()
        ids, written, _ = self.groups[group]
        return batch_of(ids[rows.to(self.device, non_blocking=True)].long(), written[rows.numpy()])


def batch_of(ids: torch.Tensor, written: np.ndarray, media: dict[str, torch.Tensor] | None = None, kind: str = "text") -> Batch:
    # Places are found on the host: asking the device for them would wait until it is idle.
    at = np.flatnonzero(np.pad(written[:, 1:], ((0, 0), (0, 1))))
    return Batch(ids, torch.from_numpy(at).to(ids.device, non_blocking=True), media or {}, kind)


class MediaData:
    """Batches of pictures and of sounds, kept on the device; each has media of one shape."""

    def __init__(self, made: dict[str, list], media: Media):
        self.media = media
        self.pools = {kind: [self._keep(kind, *batch) for batch in batches] for kind, batches in made.items() if batches}
        self.turns = dict.fromkeys(self.pools, 0)
        self.random = seeded("media order")

    @torch.no_grad()
    def _keep(self, kind: str, ids: np.ndarray, written: np.ndarray, entries: list) -> tuple:
        # Pictures are kept as bytes; they become patches when they are used.
        device = self.media.device
        kept = self.media.sounds(entries)["input_features"] if kind == "audio" else self.media.draw(entries)
        shown = None if kind == "audio" else {name: value.to(device) for name, value in helper_heads.labels(entries).items()}
        return torch.from_numpy(ids).to(device), written, kept, shown

    def next(self, kind: str) -> Batch:
        pool = self.pools[kind]
        if self.turns[kind] % len(pool) == 0:
            self.random.shuffle(pool)
        ids, written, kept, shown = pool[self.turns[kind] % len(pool)]
        self.turns[kind] += 1
        if kind == "audio":
            inputs = {"input_features": self._masked(kept), "input_features_mask": torch.ones(kept.shape[:2], dtype=torch.bool, device=kept.device)}
        else:
            # Turned around, a picture is another one that shows the same.
            turned = [axis for axis in (1, 2) if self.random.random() < 0.5]
            inputs = self.media.patches(kept.flip(turned).float())
            shown = {**shown, "middles": shown["middles"].flip(turned)}
        batch = batch_of(ids.long(), written, inputs, kind)
        batch.shown = shown
        return batch

    def _masked(self, features: torch.Tensor) -> torch.Tensor:
        """Half of the time a band of frequencies is silent, so that no voice is known by one band alone."""
        if self.random.random() < 0.5:
            return features
        features, first = features.clone(), self.random.randrange(116)
        features[:, :, first: first + self.random.randint(3, 12)] = -6.9
        return features


@dataclass(frozen=True)
class MediaSizes:
    """Batches to make, and rows in each. A large picture costs about five small ones."""
    small_images: tuple[int, int]
    large_images: tuple[int, int]
    sounds: tuple[int, int]


def make_media(folder: Path, speech_file: Path | None, sizes: MediaSizes, workers: int) -> dict[str, list]:
    """Batches by kind: token numbers, what is written, and what is to be drawn or played. Done before a GPU is touched."""
    wanted = {"image": sizes.small_images, "large image": sizes.large_images, "audio": sizes.sounds if speech_file else (0, 0)}
    return {
        kind: _in_parallel(_media_batch, [(str(folder), str(speech_file), kind, seed, rows) for seed in range(batches)], workers)
        for kind, (batches, rows) in wanted.items()
    }


def _media_batch(job: tuple) -> tuple[np.ndarray, np.ndarray, list]:
    folder, speech_file, kind, seed, rows = job
    tokens, random_source = _tokens(folder), seeded("media", kind, seed)
    if kind == "audio":
        clips, pools = _clips(speech_file)
        words = 1 if random_source.random() < 0.7 else 2
        length = random_source.choice(speech.LENGTHS[words])
        made = [speech.conversation(random_source, clips, pools, length, words) for _ in range(rows)]
    else:
        grid = random_source.choice(pictures.LARGE_GRIDS if kind == "large image" else pictures.SMALL_GRIDS)
        made = [pictures.conversation(random_source, pictures.picture(random_source, grid)) for _ in range(rows)]
    encoded = [tokens.conversation(Conversation(_in_few_words(exchanges, random_source), think=random_source.random() < 0.35)) for exchanges in made]
    longest = -(-max(len(ids) for ids, _ in encoded) // 16) * 16
    ids, written = np.full((rows, longest), tokens.pad, np.int16), np.zeros((rows, longest), bool)
    for row, (own, mask) in enumerate(encoded):
        ids[row, : len(own)], written[row, : len(own)] = own, mask
    return ids, written, [exchanges[0].medium.content for exchanges in made]


def _in_few_words(exchanges: list, random_source) -> list:
    return [manners.in_one_word(e, random_source) if e.word is not None and random_source.random() < 0.2 else e for e in exchanges]


@lru_cache(maxsize=1)
def _tokens(folder: str) -> Tokens:
    return Tokens(Path(folder))


@lru_cache(maxsize=1)
def _clips(path: str) -> tuple[speech.Clips, dict]:
    clips = speech.Clips.load(Path(path))
    return clips, {i: np.flatnonzero((clips.words == i) & ~clips.held_out) for i in range(len(speech.WORDS))}
