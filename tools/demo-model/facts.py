"""The facts about rullama: data/facts.toml as questions with answers."""

import random
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import wording
from rephrase import rephrase, shorten

FILE = Path(__file__).parent / "data" / "facts.toml"


@dataclass(frozen=True)
class Fact:
    name: str
    #: Patterns, see `wording`; those of `test` are never trained on.
    ask: tuple[str, ...]
    test: tuple[str, ...]
    answer: str
    #: The answer in one word, where there is one.
    word: str | None
    #: What the question is about, for thoughts.
    topic: str


@lru_cache(maxsize=1)
def all_facts() -> tuple[Fact, ...]:
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    facts = [
        Fact(f"fact {number}", tuple(entry["ask"]), tuple(entry["test"]), entry["answer"], entry.get("word"), "rullama")
        for number, entry in enumerate(content["fact"])
    ]
    for group in content["group"]:
        facts += [_of_group(group, item, value) for item, value in group["items"].items()]
    return tuple(facts)


def _of_group(group: dict, item: str, value) -> Fact:
    # In an inverted group the items are answers, and each has several ways to say what is wanted.
    meanings = value if group.get("invert") else [value]
    def fill(patterns: list[str]) -> tuple[str, ...]:
        return tuple(p.replace("{x}", item).replace("{a}", meaning) for p in patterns for meaning in meanings)

    first = meanings[0]
    word = group.get("word")
    return Fact(
        name=f"{group['name']}: {item}",
        ask=fill(group["ask"]),
        # Of an inverted group, the first way to say it in the first wording, and the last in the last.
        test=fill(group["test"])[:1] + fill(group["test"])[-1:],
        answer=group["answer"].replace("{x}", item).replace("{a}", first),
        word=word.replace("{a}", first) if word else None,
        topic=first if group.get("invert") else item,
    )


_OPENINGS = ("", "", "", "", "", "", "Please tell me: ", "Hey, ", "Hi! ", "Hello. ", "Question: ", "Quick question: ", "One question: ", "Sorry, ", "OK, ", "And ", "Well, ", "Tell me, ")
_CLOSINGS = ("", "", "", "", "", "", "", " Please.", " Thanks!", " Thank you.", " I am curious.", " I do not know.")


def vary(question: str, random_source: random.Random) -> str:
    """The question as different people write it: with a greeting, without capitals, without a question mark."""
    text = question
    opening = random_source.choice(_OPENINGS)
    if opening.endswith((", ", "And ")):
        text = opening + (text[0].lower() + text[1:] if not text.startswith(("I ", "`")) else text)
    else:
        text = opening + text
    if random_source.random() < 0.15 and text.endswith(("?", ".")):
        text = text[:-1]
    else:
        text += random_source.choice(_CLOSINGS)
    if random_source.random() < 0.12:
        text = text.lower() if random_source.random() < 0.5 else text[0].lower() + text[1:]
    return _mistype(text, random_source) if random_source.random() < 0.05 else text


def _mistype(text: str, random_source: random.Random) -> str:
    """Two letters of one longer word change places, or one is missing."""
    words = text.split(" ")
    long = [i for i, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if not long:
        return text
    place = random_source.choice(long)
    word, at = words[place], random_source.randint(1, len(words[place]) - 3)
    middle = word[at + 1] + word[at] if random_source.random() < 0.6 else word[at + 1]
    words[place] = word[:at] + middle + word[at + 2:]
    return " ".join(words)


def training_question(fact: Fact, random_source: random.Random) -> str:
    text = wording.sample(random_source.choice(fact.ask), random_source)
    form = random_source.random()
    if form < 0.4:
        text = rephrase(text, random_source)
    elif form < 0.5:
        return shorten(text, random_source)
    return vary(text, random_source)


def held_out_questions(fact: Fact) -> list[str]:
    return [text for pattern in fact.test for text in wording.every(pattern)[:1]]
