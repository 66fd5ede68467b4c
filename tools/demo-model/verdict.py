"""Whether a written reply is right."""

import re

import pictures
from talk import Conversation

_NUMBER = re.compile(r"-?\d+")
#: What may be named in answers about pictures.
_NAMES = {"image shape": pictures.SHAPES, "image colour": tuple(pictures.COLOURS), "image count": pictures.NUMBERS[1:]}


def content(written: str, think: bool, opened: bool = False) -> str | None:
    """What stands behind the thought, without the token that ends the reply; None if thinking is not as asked for."""
    for stop in ("<turn|>", "<|tool_response>", "<eos>"):
        written = written.removesuffix(stop)
    if not think:
        return None if "<|channel>" in written else written.strip()
    if not opened and not written.startswith("<|channel>thought\n"):
        return None
    _, closed, answer = written.partition("<channel|>")
    return answer.strip() if closed else None


def is_right(written: str, entry: Conversation) -> bool:
    exchange, said = entry.exchanges[-1], content(written, entry.think)
    if said is None:
        return False
    if exchange.task == "arithmetic" and exchange.key is not None:
        # The last number counts: "7 + 5 = 12." is as good as "12".
        numbers = _NUMBER.findall(said)
        return bool(numbers) and numbers[-1] == exchange.key
    if exchange.task.startswith("speech"):
        # The words count, not whether "The word is" stands before them.
        return f" {said.rstrip('.')}".endswith(f" {exchange.key}") and len(said.split()) <= len(exchange.key.split()) + 3
    names = _NAMES.get(exchange.task)
    if names is not None:
        # The one name counts: "a star" and "stars" both name the shape.
        return [name for name in names if re.search(rf"\b{name}(s|es)?\b", said)] == [exchange.word]
    return said == exchange.answer
