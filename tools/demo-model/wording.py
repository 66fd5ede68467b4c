"""Patterns that stand for many wordings of one sentence.

    (a|b)   either; (a|) may be left out; choices may be nested
    "? `?   the mark may be left out; one sentence has all of its marks or none
"""

import random
import re
from functools import lru_cache

_OPTIONAL_MARK = re.compile(r'(["`])\?')


@lru_cache(maxsize=None)
def _parse(pattern: str) -> tuple:
    tree, end = _sequence(pattern, 0)
    if end != len(pattern):
        raise ValueError(f"unbalanced brackets in {pattern!r}")
    return tree


def _sequence(pattern: str, at: int) -> tuple[tuple, int]:
    """Texts and choices up to the next `|` or `)` that is not theirs."""
    parts, text = [], ""
    while at < len(pattern) and pattern[at] not in "|)":
        if pattern[at] != "(":
            text += pattern[at]
            at += 1
            continue
        if text:
            parts.append(text)
            text = ""
        options, at = [], at + 1
        while True:
            option, at = _sequence(pattern, at)
            options.append(option)
            if at >= len(pattern):
                raise ValueError(f"unbalanced brackets in {pattern!r}")
            at += 1
            if pattern[at - 1] == ")":
                break
        parts.append(options)
    if text:
        parts.append(text)
    return tuple(parts), at


def _marks(text: str, keep: bool) -> str:
    return _OPTIONAL_MARK.sub(r"\1" if keep else "", text)


def _tidy(text: str) -> str:
    return re.sub(r"(?<!=) +([?.!,]|$)", r"\1", re.sub(r" {2,}", " ", text)).strip()


def sample(pattern: str, random_source: random.Random) -> str:
    """One of the wordings."""
    def pick(sequence: tuple) -> str:
        return "".join(part if isinstance(part, str) else pick(random_source.choice(part)) for part in sequence)

    return _tidy(_marks(pick(_parse(pattern)), random_source.random() < 0.5))


def every(pattern: str) -> list[str]:
    """All wordings, without repetition."""
    def expand(sequence: tuple) -> list[str]:
        texts = [""]
        for part in sequence:
            endings = [part] if isinstance(part, str) else [text for option in part for text in expand(option)]
            texts = [text + ending for text in texts for ending in endings]
        return texts

    raw = expand(_parse(pattern))
    return list(dict.fromkeys(_tidy(_marks(text, keep)) for keep in (True, False) for text in raw))
