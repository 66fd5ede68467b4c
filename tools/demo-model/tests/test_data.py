"""The data is made from seeds alone, true to its labels, and tests are not in the training data."""

import re
import unittest

import arithmetic
import examples
import facts
import manners
import tools
import wording
from talk import seeded


class Wordings(unittest.TestCase):
    def test_patterns(self):
        self.assertEqual(wording.every("(a|b) c(, d|)"), ["a c, d", "a c", "b c, d", "b c"])
        self.assertEqual(set(wording.every('say "?hello"? now')), {'say "hello" now', "say hello now"})
        with self.assertRaises(ValueError):
            wording.every("(a|b")

    def test_samples_are_among_all(self):
        random_source = seeded("wording test")
        for fact in facts.all_facts()[::7]:
            for pattern in fact.ask:
                self.assertIn(wording.sample(pattern, random_source), wording.every(pattern))


class Facts(unittest.TestCase):
    def test_there_are_enough(self):
        known = facts.all_facts()
        self.assertGreaterEqual(len(known), 200)
        for fact in known:
            with self.subTest(fact.name):
                self.assertGreaterEqual(sum(len(wording.every(pattern)) for pattern in fact.ask), 8)
                self.assertGreaterEqual(len(facts.held_out_questions(fact)), 1)
                self.assertNotRegex(fact.answer + (fact.word or ""), r"[{}]")

    def test_one_question_has_one_answer(self):
        answers: dict[str, str] = {}
        for fact in facts.all_facts():
            for pattern in fact.ask + fact.test:
                for text in wording.every(pattern):
                    self.assertEqual(answers.setdefault(text, fact.answer), fact.answer, text)


class Tests(unittest.TestCase):
    def test_same_seed_same_data(self):
        first, second = ([examples.conversation(seeded("same")).segments() for _ in range(1)] for _ in range(2))
        self.assertEqual(first, second)

    def test_held_out_questions_are_never_trained_on(self):
        random_source = seeded("held-out test")
        held = examples.held_out_texts()
        names = {name for name in tools.NAMES if manners.is_held_out_name(name)}
        for _ in range(8000):
            conversation = examples.conversation(random_source)
            for exchange in conversation.exchanges:
                if exchange.task in ("facts", "small talk", "unknown"):
                    self.assertNotIn(examples.plain(exchange.question), held)
                if exchange.call is not None:
                    value = next(iter(exchange.call.arguments.values()))
                    self.assertFalse(tools._is_held_out(exchange.call.name, value))
            if conversation.system:
                found = re.search(r"(name is|You are|called|named) ([A-Z][a-z]+)\b", conversation.system)
                self.assertFalse(found and found[2] in names, conversation.system)

    def test_held_out_sums_are_never_trained_on(self):
        random_source = seeded("sums")
        trained = set()
        for _ in range(20_000):
            trained.add(arithmetic.training(random_source).answer)
        tested = {exchange.answer for exchange in arithmetic.tests(300)}
        self.assertFalse(trained & tested)

    def test_sums_and_their_thoughts_are_right(self):
        random_source = seeded("sums are right")
        for _ in range(3000):
            exchange = arithmetic.training(random_source)
            for left, sign, right, result in re.findall(r"(\d+(?: [+-] \d+)?) ([+-]) (\d+) = (-?\d+)", f"{exchange.thought} {exchange.answer}"):
                self.assertEqual(eval(f"{left} {sign} {right}"), int(result))
            self.assertTrue(exchange.answer.endswith(f"= {exchange.word}."))

    def test_every_task_has_tests(self):
        for name, conversations in examples.tests().items():
            with self.subTest(name):
                self.assertGreaterEqual(len(conversations), 20)
