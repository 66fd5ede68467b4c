"""The text conversations that the model learns from, the held-out tests, and every text of both."""

import random
import re
from dataclasses import replace
from functools import lru_cache

import arithmetic
import facts
import manners
import pictures
import speech
import tools
import wording
from rephrase import rephrase
from talk import Conversation, Exchange, seeded


def _fact(fact: facts.Fact, question: str) -> Exchange:
    return Exchange("facts", question, fact.answer, f"The question is about {fact.topic}.", word=fact.word)


def plain(question: str) -> str:
    """A question without what people write differently: capitals, marks and spaces."""
    return re.sub(r"[^a-z0-9+\-=]+", " ", question.lower()).strip()


@lru_cache(maxsize=1)
def held_out_texts() -> frozenset[str]:
    """Every held-out question that is decided by its wording. Training drops what equals one of them."""
    fixed = [question for fact in facts.all_facts() for question in facts.held_out_questions(fact)]
    fixed += [e.question for e in manners.small_talk_tests() + manners.unknown_tests()]
    return frozenset(plain(question) for question in fixed)


def _exchange(random_source: random.Random) -> Exchange:
    while True:
        kind = random_source.random()
        if kind < 0.56:
            fact = random_source.choice(facts.all_facts())
            made = _fact(fact, facts.training_question(fact, random_source))
        elif kind < 0.80:
            made = arithmetic.training(random_source)
        elif kind < 0.88:
            made = manners.small_talk(random_source)
        else:
            made = manners.unknown(random_source)
        if plain(made.question) not in held_out_texts():
            return made


def conversation(random_source: random.Random) -> Conversation:
    """One conversation for training, mostly of one to six exchanges, seldom of more."""
    think = random_source.random() < 0.45
    # With thinking on only the last exchange is learnt from, so longer ones are mostly ballast.
    count = random_source.choice((1, 1, 1, 1, 2, 3) if think else (1, 1, 2, 3, 4, 5, 6))
    if random_source.random() < 0.04:
        count = random_source.randint(7, 20)
    declared: list[dict] = []
    first: list[Exchange] = []
    kind = random_source.random()
    if kind < 0.17:
        declared, count = tools.declare(random_source), min(count, 3)
    if kind < 0.17 or kind > 0.72:
        chosen = manners.plain_style(random_source) if random_source.random() < 0.6 else None
    elif kind < 0.22:
        chosen, asked = manners.named(random_source)
        first = [asked]
    elif kind < 0.36:
        chosen = manners.style(random_source)
    else:
        chosen = None

    exchanges = first
    while len(exchanges) < count:
        if declared and random_source.random() < 0.8:
            exchanges.append(tools.training(declared, random_source))
            continue
        made = _exchange(random_source)
        if chosen is not None and not chosen.fits(made):
            continue
        if chosen is not None:
            made = chosen.change(made)
        elif made.word is not None and random_source.random() < 0.16:
            made = manners.in_one_word(made, random_source)
        exchanges.append(made)
    if think and declared and exchanges[-1].call is None:
        random_source.shuffle(exchanges)
    return Conversation(exchanges, chosen.system if chosen else None, declared, think)


def tests(scale: float = 1.0) -> dict[str, list[Conversation]]:
    """Held-out conversations by task. Nothing in them was trained on; see `held_out_texts` and the tasks."""
    number = lambda full: max(4, round(full * scale))
    random_source = seeded("tests")
    asked = [_fact(fact, question) for fact in facts.all_facts() for question in facts.held_out_questions(fact)]
    if scale < 1:
        asked = random_source.sample(asked, number(len(asked)))
    sums = arithmetic.tests(number(400))
    single = lambda exchanges, think=False: [Conversation([exchange], think=think) for exchange in exchanges]
    with_words = [e for e in asked if e.word is not None] + sums[: number(60)]
    brief = [manners.in_one_word(e, random_source, test=True) for e in with_words]
    systems = manners.system_tests(asked + sums, number(120))
    return {
        "facts": single(asked),
        "facts, thinking": single(random_source.sample(asked, number(200)), think=True),
        "arithmetic": single(sums),
        "arithmetic, thinking": single(sums[: number(200)], think=True),
        "one word": single(random_source.sample(brief, min(len(brief), number(120)))),
        "system prompt": [Conversation([exchange], system=system) for system, exchange in systems],
        "tools": [Conversation([exchange], tools=declared) for declared, exchange in tools.tests(number(120))],
        "tools, thinking": [Conversation([exchange], tools=declared, think=True) for declared, exchange in tools.tests(number(60))],
        "small talk": single(manners.small_talk_tests()),
        "does not know": single(manners.unknown_tests()),
        "later in a conversation": [
            Conversation([_exchange(random_source) for _ in range(3)] + [exchange]) for exchange in random_source.sample(asked + sums, number(120))
        ],
        "late in a long one": [
            Conversation([_exchange(random_source) for _ in range(14)] + [exchange], think=number_of % 2 == 1)
            for number_of, exchange in enumerate(random_source.sample(asked + sums, number(60)))
        ],
    }


def every_text() -> list[str]:
    """All texts that the vocabulary must be good for: all wordings, and a sample of what is composed of them."""
    random_source = seeded("texts")
    texts = [text for fact in facts.all_facts() for pattern in fact.ask + fact.test for text in wording.every(pattern)]
    texts += [text for fact in facts.all_facts() for text in (fact.answer, fact.word or "", fact.topic)]
    texts += [rephrase(wording.sample(pattern, random_source), random_source) for fact in facts.all_facts() for pattern in fact.ask * 3]
    texts += list(facts._OPENINGS) + list(facts._CLOSINGS)
    for _ in range(6000):
        texts += [text for text, _ in _without_mistypes(conversation(random_source)).segments()]
    for group in tests().values():
        texts += [text for entry in group for text, _ in entry.segments()]
    for name in tools.NAMES + tools.CITIES + list(tools.TOPICS) + list(tools.ROOMS):
        texts += [f" {name}", f'<|"|>{name}<|"|>']
    for grid in (pictures.SMALL_GRIDS[0],):
        for exchange in pictures.tests(400, (grid,)):
            texts += [exchange.question, " " + exchange.question, exchange.answer, exchange.thought, exchange.word or ""]
    for patterns in (*pictures._ASK.values(), *speech._ASK.values(), *speech._TEST.values()):
        texts += [" " + text for pattern in patterns for text in wording.every(pattern)]
        texts += [text for pattern in patterns for text in wording.every(pattern)]
    texts += [text for word in speech.WORDS for text in (word, f" {word}", f"The word is {word}.", f"I hear: {word}.")]
    return texts


def _without_mistypes(entry: Conversation) -> Conversation:
    # Mistyped words would fill the vocabulary with tokens that nothing else needs.
    known = facts.all_facts()
    clean = [replace(e, question=known[0].ask[0]) if e.task in ("facts", "one word") else e for e in entry.exchanges]
    return Conversation(clean, entry.system, entry.tools, entry.think)
