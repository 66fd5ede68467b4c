"""What one exchange and one conversation of the training data are, and the seeds that everything is made from."""

import hashlib
import random
from dataclasses import dataclass, field, replace

from chat import Call, Message, render, reply_text


@dataclass(frozen=True)
class Medium:
    """An image or a sound of an example. The numbers that draw it or find it are the generator's."""
    kind: str
    content: object
    #: Rows it becomes in the text.
    rows: int

    @property
    def text(self) -> str:
        return f"<|{self.kind}>" + f"<|{self.kind}|>" * self.rows + f"<{self.kind}|>"


@dataclass(frozen=True)
class Exchange:
    task: str
    question: str
    answer: str
    thought: str
    #: The same answer in one word, if there is one.
    word: str | None = None
    call: Call | None = None
    #: What the called tool answers, and the thought after it.
    result: str = ""
    result_thought: str = ""
    #: What decides whether a written answer is right; the whole answer if nothing is given.
    key: str | None = None
    medium: Medium | None = None


@dataclass
class Conversation:
    exchanges: list[Exchange]
    system: str | None = None
    tools: list[dict] = field(default_factory=list)
    think: bool = False

    def messages(self) -> list[Message]:
        messages = [] if self.system is None else [Message("system", self.system)]
        thought = lambda text: text if self.think else ""
        for exchange in self.exchanges:
            messages.append(Message("user", exchange.question, media=exchange.medium.text if exchange.medium else ""))
            if exchange.call:
                messages.append(Message("assistant", thinking=thought(exchange.thought), calls=[exchange.call]))
                messages.append(Message("tool", exchange.result, tool_name=exchange.call.name))
                messages.append(Message("assistant", exchange.answer, thinking=thought(exchange.result_thought)))
            else:
                messages.append(Message("assistant", exchange.answer, thinking=thought(exchange.thought)))
        return messages

    def segments(self) -> list[tuple[str, bool]]:
        """The text as the model meets it, cut into what it reads and what it writes.

        With thinking on, thoughts of earlier turns are not shown again, so only the last turn is what a model would
        have written; the others are read."""
        messages = self.messages()
        users = [i for i, message in enumerate(messages) if message.role == "user"]
        first = users[-1] if self.think else 0
        segments, done = [], ""
        for index, message in enumerate(messages):
            if message.role != "assistant" or index < first:
                continue
            prompt = render(messages[:index], self.tools, self.think)
            if not prompt.startswith(done):
                raise AssertionError(f"a prompt does not continue what was written:\n{done}\n{prompt}")
            written = reply_text(message, self.think, after_tool=messages[index - 1].role == "tool")
            segments += [(prompt[len(done):], False), (written, True)]
            done = prompt + written
        return segments

    def prompt(self) -> str:
        """What the model reads before its first reply to the last exchange."""
        messages = self.messages()
        last = max(i for i, message in enumerate(messages) if message.role == "user")
        return render(messages[: last + 1], self.tools, self.think)

    def prompt_after_tool(self) -> str:
        return render(self.messages()[:-1], self.tools, self.think)


def seeded(*names) -> random.Random:
    """A source of chance that depends on the names alone, on every machine and version of Python."""
    return random.Random(int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:8], "little"))


def held_out(kind: str, *values, share: float = 0.15) -> bool:
    """Whether these values are kept for tests; training never sees them."""
    digest = hashlib.sha256(repr((kind, *values)).encode()).digest()
    return int.from_bytes(digest[:4], "little") / 2**32 < share


def with_word(exchange: Exchange, question: str) -> Exchange:
    """The exchange with the answer in one word."""
    return replace(exchange, question=question, answer=exchange.word, thought=f"One word is wanted. {exchange.thought}", key=exchange.word, task="one word")
