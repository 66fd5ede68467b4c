"""Addition and subtraction of one- and two-digit numbers. Pairs of numbers, not only wordings, are held out."""

import random

from talk import Exchange, held_out, seeded
from wording import every, sample

_ADD = (
    "What is {a} + {b}?", "{a} + {b}", "{a} + {b} = ?", "(How much|What) is {a} plus {b}?", "What do {a} and {b} (make|give|add up to)?",
    "(Add|Please add) {a} and {b}.", "(Compute|Calculate|Work out) {a} + {b}.", "What is the sum of {a} and {b}?",
    "(I have|There are) {a} (apples|books|coins) and get {b} more. How many (are there|do I have)?", "{a}+{b}", "What is {a} and {b} together?",
)
_ADD_TEST = ("Tell me the sum of {a} and {b}.", "How much do {a} and {b} make?", "Please calculate {a} plus {b}.")
_SUBTRACT = (
    "What is {a} - {b}?", "{a} - {b}", "{a} - {b} = ?", "(How much|What) is {a} minus {b}?", "(Subtract|Take) {b} from {a}.",
    "(Compute|Calculate|Work out) {a} - {b}.", "What is the difference (of|between) {a} and {b}?", "What (is left|remains) (if|when) I take {b} from {a}?",
    "{a}-{b}", "What is {a} less {b}?",
)
_SUBTRACT_TEST = ("Please calculate {a} minus {b}.", "What remains of {a} minus {b}?", "Tell me what {a} less {b} is.")


def is_held_out(a: int, b: int, sign: str) -> bool:
    pair = (min(a, b), max(a, b)) if sign == "+" else (a, b)
    return held_out("arithmetic", sign, *pair)


def thought(a: int, b: int, sign: str) -> str:
    """The sum done on paper: ones, then tens."""
    if sign == "-" and a < b:
        return f"{a} is less than {b}, so it is negative. {thought(b, a, sign)}"
    tens_a, ones_a, tens_b, ones_b = a // 10, a % 10, b // 10, b % 10
    if a < 10 and b < 10:
        return f"{a} {sign} {b} = {a + b if sign == '+' else a - b}."
    if sign == "+":
        ones = ones_a + ones_b
        carry = " + 1" if ones > 9 else ""
        return f"Ones: {ones_a} + {ones_b} = {ones}. Tens: {tens_a} + {tens_b}{carry} = {tens_a + tens_b + ones // 10}."
    borrow = ones_a < ones_b
    top = ones_a + 10 if borrow else ones_a
    return f"Ones: {top} - {ones_b} = {top - ones_b}. Tens: {tens_a} - {tens_b}{' - 1' if borrow else ''} = {tens_a - tens_b - borrow}."


def exchange(a: int, b: int, sign: str, question: str) -> Exchange:
    result = a + b if sign == "+" else a - b
    return Exchange("arithmetic", question, f"{a} {sign} {b} = {result}.", thought(a, b, sign), word=str(result), key=str(result))


def _pair(random_source: random.Random) -> tuple[int, int, str]:
    kind = random_source.random()
    largest = (9, 9) if kind < 0.12 else (99, 9) if kind < 0.25 else (99, 99)
    a, b = (random_source.randint(0, most) for most in largest)
    sign = random_source.choice("+-")
    # Negative results are rarer than a fair coin would make them.
    if sign == "-" and a < b and random_source.random() < 0.6:
        a, b = b, a
    return a, b, sign


def training(random_source: random.Random) -> Exchange:
    while True:
        a, b, sign = _pair(random_source)
        if not is_held_out(a, b, sign):
            break
    pattern = random_source.choice(_ADD if sign == "+" else _SUBTRACT)
    if sign == "-" and a < b and "(I have" in pattern:
        pattern = _SUBTRACT[0]
    return exchange(a, b, sign, sample(pattern, random_source).replace("{a}", str(a)).replace("{b}", str(b)))


def tests(count: int) -> list[Exchange]:
    """Held-out pairs; half of them in wordings that training has, half in held-out ones."""
    random_source, found = seeded("arithmetic tests"), []
    while len(found) < count:
        a, b, sign = _pair(random_source)
        if is_held_out(a, b, sign):
            new = len(found) % 2 == 0
            patterns = (_ADD_TEST if new else _ADD) if sign == "+" else (_SUBTRACT_TEST if new else _SUBTRACT)
            text = random_source.choice(every(random_source.choice(patterns)))
            found.append(exchange(a, b, sign, text.replace("{a}", str(a)).replace("{b}", str(b))))
    return found
