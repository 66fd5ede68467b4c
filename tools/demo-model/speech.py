"""Spoken words: clips by espeak-ng and sox in many voices, kept in one small file, and questions about what is said.

Clips are made once, on a machine that has espeak-ng (`make.py speech`); training varies speed, loudness, place and noise
anew for every example. Some voices are held out: tests are spoken by nobody that training heard.
"""

import io
import random
import subprocess
import wave
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from talk import Exchange, Medium, seeded
from wording import every, sample

RATE = 16_000
DIGITS = "zero one two three four five six seven eight nine".split()
WORDS = DIGITS + "yes no stop go left right up down on off red green blue hello music light water house dog cat".split()

_ACCENTS = ("en-gb", "en-us", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-us-nyc", "en-029")
_SPEAKERS = ("m1", "m2", "m3", "m4", "m6", "m7", "m8", "f1", "f2", "f3", "f5", "Alicia", "Andrea", "Andy", "belinda", "benjamin", "caleb", "david", "linda", "Michael", "Mike", "quincy", "robert", "steph", "victor", "john")
HELD_OUT_SPEAKERS = ("m5", "f4", "Annie", "paul", "edward")


@dataclass
class Clips:
    """Waveforms from -1 to 1 at 16 kHz, without the silence around the word."""
    samples: list[np.ndarray]
    words: np.ndarray
    held_out: np.ndarray

    def save(self, path: Path) -> None:
        # Eight bits by the μ-law: half the size of sixteen, and its hiss is below the noise that training adds.
        codes = [(np.sign(s) * np.log1p(255 * np.abs(s)) / np.log(256) * 127).round().astype(np.int8) for s in self.samples]
        np.savez_compressed(path, codes=np.concatenate(codes), lengths=np.array([len(c) for c in codes], np.int32), words=self.words, held_out=self.held_out, names=np.array(WORDS))

    @staticmethod
    def load(path: Path) -> "Clips":
        with np.load(path) as file:
            if list(file["names"]) != WORDS:
                raise ValueError(f"{path} was made for other words; make it again with `make.py speech`")
            codes = file["codes"].astype(np.float32) / 127
            samples = np.sign(codes) * np.expm1(np.abs(codes) * np.log(256)) / 255
            return Clips(np.split(samples.astype(np.float32), np.cumsum(file["lengths"])[:-1]), file["words"], file["held_out"])


def record(per_word: int, per_word_held_out: int) -> Clips:
    """Has espeak-ng say every word that many times, each time in another voice, at another speed and pitch."""
    random_source, jobs = seeded("speech"), []
    for index, word in enumerate(WORDS):
        for number in range(per_word + per_word_held_out):
            test = number >= per_word
            speaker = random_source.choice(HELD_OUT_SPEAKERS if test else _SPEAKERS)
            voice = f"{random_source.choice(_ACCENTS)}+{speaker}"
            jobs.append((index, word, voice, random_source.randint(110, 210), random_source.randint(20, 80), test))
    with ThreadPoolExecutor(4) as pool:
        samples = list(pool.map(lambda job: _say(*job[1:5]), jobs))
    return Clips(samples, np.array([job[0] for job in jobs], np.int16), np.array([job[5] for job in jobs]))


def _say(word: str, voice: str, speed: int, pitch: int) -> np.ndarray:
    spoken = subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", word], check=True, capture_output=True).stdout
    # -R: the same dither every time, so that the same seed gives the same file.
    resampled = subprocess.run(["sox", "-R", "-t", "wav", "--ignore-length", "-", "-r", str(RATE), "-c", "1", "-b", "16", "-t", "wav", "-", "norm", "-3"], input=spoken, check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(resampled)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    return samples[max(0, loud[0] - 160): loud[-1] + 480]


# ---- examples

@dataclass(frozen=True)
class Sound:
    #: Numbers of clips, in the order in which they are said.
    clips: tuple[int, ...]
    #: First sample of each, and how fast it is said.
    starts: tuple[int, ...]
    speeds: tuple[float, ...]
    #: Samples in all.
    length: int
    gain: float
    noise: float
    tilt: float
    seed: int

    @property
    def rows(self) -> int:
        frames = (self.length + 160 - 321) // 160 + 1
        return -(-(-(-frames // 2)) // 2)


#: Lengths in samples, of one word and of two. One batch has one length.
LENGTHS = {1: (16_000, 19_200, 24_000, 32_000), 2: (28_800, 32_000, 40_000)}


def sound(random_source: random.Random, clips: Clips, chosen: tuple[int, ...], length: int) -> Sound:
    speeds = tuple(random_source.uniform(0.82, 1.2) for _ in chosen)
    lengths = [int(len(clips.samples[clip]) / speed) for clip, speed in zip(chosen, speeds)]
    free = length - sum(lengths) - 1600 * (len(chosen) - 1)
    if free < 400:
        # Too slow for this length: as fast as it must be.
        factor = sum(lengths) / max(1, length - 1600 * (len(chosen) - 1) - 800)
        speeds = tuple(speed * factor for speed in speeds)
        lengths = [int(len(clips.samples[clip]) / speed) for clip, speed in zip(chosen, speeds)]
        free = length - sum(lengths) - 1600 * (len(chosen) - 1)
    starts, at = [], random_source.randint(0, max(0, free) * 2 // 3)
    for size in lengths:
        starts.append(at)
        at += size + 1600
    return Sound(chosen, tuple(starts), speeds, length, random_source.uniform(0.15, 1.0), 10 ** random_source.uniform(-4.0, -1.9), random_source.uniform(-0.5, 0.5), random_source.getrandbits(31))


_ASK = {
    "transcribe": ("Transcribe (this|the audio|it|the recording|what you hear)( please|).", "(Write|Type) (down |)what (is said|you hear|I said|I say).", "What (is said|was said|did I say|do I say|do you hear)?", "What (is|was) (said|spoken) (here|in the audio|in this recording)?", "(Transcription|Text), please.", "Listen. What do I say?"),
    "word": ("(Which|What) word (is this|is it|do you hear|is said|was said|did I say)?", "(Name|Tell me) the word.", "What is the word?", "(Which|What) word is (spoken|in the recording)?"),
    "number": ("(Which|What) number (is this|is it|do you hear|is said|was said|did I say)?", "(Name|Tell me) the number.", "What is the number?", "(Which|What) digit (is said|do you hear|is this)?"),
}
_TEST = {
    "transcribe": ("Please transcribe the recording for me.", "Write down what you hear in this audio."),
    "word": ("Can you tell me which word it is?", "Which word do you hear in the audio?"),
    "number": ("Can you tell me which number it is?", "Which number do you hear in the audio?"),
}


def _exchange(words: list[str], kind: str, question: str, medium: Medium | None) -> Exchange:
    said = " ".join(words)
    answer = said if kind == "transcribe" else f"The {kind} is {said}."
    return Exchange("speech" if len(words) == 1 else "speech, two words", question, answer, f"I hear: {said}.", word=said if len(words) == 1 else None, medium=medium, key=said)


def _kinds(words: list[str]) -> list[str]:
    if len(words) > 1:
        return ["transcribe"]
    return ["transcribe", "word", "number"] if words[0] in DIGITS else ["transcribe", "word"]


def conversation(random_source: random.Random, clips: Clips, pools: dict[int, np.ndarray], length: int, count: int) -> list[Exchange]:
    """One or two questions about one recording. `pools` has the numbers of the clips of each word."""
    indices = [random_source.randrange(len(WORDS)) for _ in range(count)]
    entry = sound(random_source, clips, tuple(int(random_source.choice(pools[i])) for i in indices), length)
    words = [WORDS[i] for i in indices]
    kinds = _kinds(words)
    chosen = random_source.sample(kinds, min(len(kinds), random_source.choice((1, 2))))
    medium = Medium("audio", entry, entry.rows)
    return [_exchange(words, kind, sample(random_source.choice(_ASK[kind]), random_source), medium if i == 0 else None) for i, kind in enumerate(chosen)]


def tests(clips: Clips, count: int, seed: str = "") -> list[Exchange]:
    """Held-out voices and held-out wordings, every word equally often; at the end as many with two words."""
    random_source, found = seeded("speech tests", *([seed] if seed else [])), []
    pools = {i: np.flatnonzero((clips.words == i) & clips.held_out) for i in range(len(WORDS))}
    for number in range(2 * count):
        size = 1 if number < count else 2
        indices = [number % len(WORDS)] + [random_source.randrange(len(WORDS)) for _ in range(size - 1)]
        words = [WORDS[i] for i in indices]
        entry = sound(random_source, clips, tuple(int(random_source.choice(pools[i])) for i in indices), random_source.choice(LENGTHS[size]))
        kind = random_source.choice(_kinds(words))
        found.append(_exchange(words, kind, random_source.choice(every(random_source.choice(_TEST[kind]))), Medium("audio", entry, entry.rows)))
    return found
