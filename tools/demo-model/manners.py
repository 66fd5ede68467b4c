"""Small talk, what the model does not know, and following instructions: of the question and of the system prompt."""

import random
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Callable

from talk import Exchange, held_out, seeded, with_word
from tools import NAMES
from wording import every, sample

FILE = Path(__file__).parent / "data" / "small_talk.toml"


@lru_cache(maxsize=1)
def _content() -> dict:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


# ---- small talk

def small_talk(random_source: random.Random) -> Exchange:
    entry = random_source.choice(_content()["talk"])
    return _talk(entry, sample(random_source.choice(entry["ask"]), random_source))


def _talk(entry: dict, question: str) -> Exchange:
    return Exchange("small talk", question, entry["answer"], "This is small talk.")


def small_talk_tests() -> list[Exchange]:
    return [_talk(entry, question) for entry in _content()["talk"] for question in entry["test"]]


# ---- what it does not know

def unknown(random_source: random.Random) -> Exchange:
    return _unknown(sample(random_source.choice(_content()["unknown"]["ask"]), random_source))


def _unknown(question: str) -> Exchange:
    return Exchange("unknown", question, _content()["unknown"]["answer"], "I was not trained on this.")


def unknown_tests() -> list[Exchange]:
    return [_unknown(question) for pattern in _content()["unknown"]["test"] for question in every(pattern)]


# ---- "answer in one word"

_ONE_WORD = ("(Answer|Reply) (in|with) (one|a single) word.", "(In|With) one word(, please|).", "One word( only|, please).", "Use (only |just |)one word.", "Just one word.")
_ONE_WORD_TEST = ("Please answer in only one word.", "Reply by just a single word.")


def in_one_word(exchange: Exchange, random_source: random.Random, test: bool = False) -> Exchange:
    """The same question with the wish for one word behind or before it."""
    wish = random_source.choice(every(random_source.choice(_ONE_WORD_TEST if test else _ONE_WORD)))
    question = exchange.question if exchange.question.endswith(("?", ".", "!")) else exchange.question + "."
    return with_word(exchange, f"{question} {wish}" if random_source.random() < 0.75 else f"{wish} {question}")


# ---- system prompts

@dataclass(frozen=True)
class Style:
    system: str
    change: Callable[[Exchange], Exchange]
    #: Whether the style can be used for an exchange.
    fits: Callable[[Exchange], bool] = lambda exchange: exchange.call is None


_PLAIN = ("You are a helpful assistant.", "Be helpful.", "You are the demo model of rullama.", "Answer the questions of the user.", "Be kind and truthful.", "You answer questions about rullama.", "Be polite.", "")
_ONE_WORD_SYSTEM = ("Always (answer|reply) in one word.", "(Answer|Reply) in (one|a single) word(, always|).", "Use one word for every (answer|reply).", "Your (answers|replies) have one word.")
_ONE_WORD_SYSTEM_TEST = ("You always reply with one single word.", "Every answer of yours has one word.")
_PIRATE = ("(Answer|Talk|Speak|Write) like a pirate.", "You are a pirate.", "Be a pirate.", "You are an old pirate.")
_PIRATE_TEST = ("You are a pirate and talk like one.", "Always speak like a pirate.")
_BEGINNINGS = ("OK.", "Sure.", "Well.", "Indeed.", "Yes, sir.", "My friend.", "Listen.", "Aha.", "Very well.", "Here you are.")
_BEGIN = ("(Begin|Start) (every|each) (answer|reply) with: {v}", "Your (answers|replies) (begin|start) with: {v}", "Always (begin|start) with: {v}")
_BEGIN_TEST = ("Each of your answers must start with: {v}", "Begin all answers with: {v}")
_END = ("(End|Close|Finish) (every|each) (answer|reply) with: {v}", "Your (answers|replies) (end|close) with: {v}", "Always (end|close) with: {v}")
_END_TEST = ("Each of your answers must end with: {v}", "Finish all answers with: {v}")
_NAME = ("Your name is {v}.", "You are {v}.", "You are {v}, an assistant.", "You are called {v}.", "You are a helpful assistant named {v}.")
_NAME_TEST = ("You are a kind assistant called {v}.", "You are an assistant and your name is {v}.")
_WHO = ("What is your name?", "Who are you?", "(What|How) are you called?", "What's your name?", "Tell me your name.", "May I know your name?", "Hello, who are you?")
_WHO_TEST = ("Please tell me your name.", "Hi, what is your name?")


def is_held_out_name(name: str) -> bool:
    # Held out as the model's own name; all names occur in requests to call somebody.
    return held_out("name", name, share=0.2)


def _styled(kind: str, text: str, value: str = "") -> Style:
    system = text.replace("{v}", value)
    if kind == "begin":
        return Style(system, lambda e: replace(e, answer=f"{value} {e.answer}", key=None))
    if kind == "end":
        return Style(system, lambda e: replace(e, answer=f"{e.answer} {value}", key=None))
    if kind == "pirate":
        return Style(system, lambda e: replace(e, answer=f"Arr! {e.answer}", key=None))
    if kind == "one word":
        return Style(system, lambda e: with_word(e, e.question), lambda e: e.call is None and e.word is not None)
    return Style(system, lambda e: e)


_KINDS = {"one word": (_ONE_WORD_SYSTEM, _ONE_WORD_SYSTEM_TEST), "pirate": (_PIRATE, _PIRATE_TEST), "begin": (_BEGIN, _BEGIN_TEST), "end": (_END, _END_TEST)}


def style(random_source: random.Random, test: bool = False) -> Style:
    kind = random_source.choice(sorted(_KINDS))
    pattern = random_source.choice(_KINDS[kind][1 if test else 0])
    return _styled(kind, random_source.choice(every(pattern)), random_source.choice(_BEGINNINGS))


def plain_style(random_source: random.Random) -> Style:
    return Style(random_source.choice(_PLAIN), lambda e: e, lambda e: True)


def named(random_source: random.Random, test: bool = False) -> tuple[Style, Exchange]:
    """A system prompt that gives the model a name, and the question for it."""
    name = random_source.choice([name for name in NAMES if is_held_out_name(name) == test])
    system = random_source.choice(_NAME_TEST if test else _NAME).replace("{v}", name)
    question = random_source.choice(_WHO_TEST) if test else sample(random_source.choice(_WHO), random_source)
    answer = f"I am {name}."
    return Style(system, lambda e: e, lambda e: True), Exchange("system prompt", question, answer, "My name is asked.", word=name, key=answer)


def system_tests(exchanges: list[Exchange], count: int) -> list[tuple[str, Exchange]]:
    """Held-out wordings of system prompts over exchanges that are themselves held out."""
    random_source, found = seeded("system tests"), []
    while len(found) < count:
        if len(found) % 5 == 4:
            chosen, exchange = named(random_source, test=True)
        else:
            chosen = style(random_source, test=True)
            exchange = random_source.choice([e for e in exchanges if chosen.fits(e)])
            exchange = replace(chosen.change(exchange), task="system prompt")
        found.append((chosen.system, exchange))
    return found
