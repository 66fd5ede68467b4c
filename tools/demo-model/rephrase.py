"""Other ways to ask the same, by rules: so that training hears a question in many more forms than facts.toml has."""

import random
import re

_PARTICIPLES = {
    "load": "loaded", "open": "opened", "use": "used", "choose": "chosen", "delete": "deleted", "remove": "removed", "erase": "erased", "export": "exported",
    "import": "imported", "rename": "renamed", "search": "searched", "copy": "copied", "edit": "edited", "change": "changed", "correct": "corrected",
    "stop": "stopped", "cancel": "cancelled", "interrupt": "interrupted", "regenerate": "regenerated", "repeat": "repeated", "install": "installed",
    "build": "built", "run": "run", "start": "started", "begin": "begun", "unload": "unloaded", "close": "closed", "keep": "kept", "store": "stored",
    "save": "saved", "send": "sent", "set": "set", "write": "written", "trust": "trusted", "measure": "measured", "convert": "converted", "list": "listed",
    "embed": "embedded", "import conversations": "imported", "back up": "backed up", "resume": "resumed", "see": "seen", "show": "shown", "compare": "compared",
    "check": "checked", "render": "rendered", "tokenize": "tokenized", "make": "made", "get": "got", "manage": "managed", "handle": "handled", "catch": "caught",
}
_FILLERS = frozenset("a an the is are do does did can could i you it of to in on for my me this that what how which please and with by be will would should was were there tell".split())


def _how(found: re.Match, random_source: random.Random) -> str:
    deed = found[1]
    forms = [
        f"Tell me how to {deed}.", f"What must I do to {deed}?", f"What is the way to {deed}?", f"I would like to {deed}.", f"Is there a way to {deed}?",
        f"Explain how to {deed}.", f"How does one {deed}?", f"What do I do to {deed}?", f"I want to {deed}, how?", f"Can you tell me how to {deed}?", f"Help me {deed}.",
        f"What should I do if I want to {deed}?", f"How could I {deed}?", f"What lets me {deed}?",
    ]
    verb, _, thing = deed.partition(" ")
    if verb in _PARTICIPLES and re.match(r"(a|an|the|my|all|models|conversations|chats|logits)\b", thing):
        are = "are" if re.match(r"(all|\w+s\b|the \w+s\b|my \w+s\b)", thing) else "is"
        forms += [f"How {are} {thing} {_PARTICIPLES[verb]}?", f"Where {are} {thing} {_PARTICIPLES[verb]}?", f"How can {thing} be {_PARTICIPLES[verb]}?"] * 2
    return random_source.choice(forms)


def _does(found: re.Match, random_source: random.Random) -> str:
    thing = found[1]
    return random_source.choice((
        f"What is the purpose of {thing}?", f"Tell me what {thing} does.", f"What good is {thing}?", f"Can you explain {thing}?", f"I do not understand {thing}.",
        f"What can I do with {thing}?", f"What does {thing} do for me?", f"Please explain {thing}.", f"Do you know what {thing} does?", f"What is {thing} good for?",
        f"{thing}, what does it do?", f"Why would I use {thing}?", f"What would I use {thing} for?",
    ))


def _means(found: re.Match, random_source: random.Random) -> str:
    thing = found[1]
    return random_source.choice((
        f"What is meant by {thing}?", f"Tell me what {thing} means.", f"I do not understand {thing}.", f"Do you know what {thing} means?", f"Can you explain {thing}?",
        f"What should I understand by {thing}?", f"Please explain the meaning of {thing}.", f"{thing}, what does that mean?", f"What is the word {thing} for?",
    ))


def _is(found: re.Match, random_source: random.Random) -> str:
    thing = found[1]
    return random_source.choice((
        f"Tell me what {thing} is.", f"Can you tell me what {thing} is?", f"Do you know what {thing} is?", f"Please explain {thing}.", f"I would like to know what {thing} is.",
        f"Say what {thing} is.", f"{thing}, what is that?", f"Could you say what {thing} is?", f"What exactly is {thing}?",
    ))


def _can(found: re.Match, random_source: random.Random) -> str:
    deed = found[1]
    return random_source.choice((f"Is it possible to {deed}?", f"May I {deed}?", f"Am I able to {deed}?", f"Could I {deed}?", f"Would it be possible to {deed}?", f"I want to {deed}. Is that possible?"))


def _whether(found: re.Match, random_source: random.Random) -> str:
    return random_source.choice(("I would like to know: ", "Can you tell me, ", "Is it true: ", "I wonder, ")) + found[0][0].lower() + found[0][1:]


_RULES = (
    (re.compile(r"How (?:do|can) I ([^?]+)\?"), _how),
    (re.compile(r"How to ([^?]+)\?"), _how),
    (re.compile(r"What does ([^?]+?) do\?"), _does),
    (re.compile(r"What does ([^?]+?) mean\?"), _means),
    (re.compile(r"What is ((?!this|that|it\b|left|drawn)[^?]+?)\?"), _is),
    (re.compile(r"Can I ([^?]+)\?"), _can),
    (re.compile(r"(?:Does|Is|Are|Do) [^?]+\?"), _whether),
)


def rephrase(question: str, random_source: random.Random) -> str:
    """Another form by the first rule that fits; the question itself if none does."""
    for pattern, other in _RULES:
        if found := pattern.fullmatch(question):
            return other(found, random_source)
    return question


def shorten(question: str, random_source: random.Random) -> str:
    """As people type into a search field: without all, or some, of the words that carry little."""
    words = question.rstrip("?.").split(" ")
    share = random_source.choice((0.3, 0.6, 0.9))
    kept = [word for word in words if word.lower().strip(",") not in _FILLERS or random_source.random() > share]
    return " ".join(kept) if len(kept) > 2 else question
