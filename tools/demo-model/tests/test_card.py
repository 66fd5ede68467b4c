"""The card in the repository belongs to the file in the repository, and says of the required tasks what is required."""

import hashlib
import math
import re
import unittest
from pathlib import Path

import table
from gguf_file import GgufFile

MODELS = Path(__file__).resolve().parents[3] / "models"


class Card(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.card, cls.file = (MODELS / "README.md").read_text(encoding="utf-8"), MODELS / "demo.gguf"

    def test_it_is_the_card_of_this_file(self):
        contents = self.file.read_bytes()
        self.assertIn(f"| {len(contents):,} bytes,", self.card)
        self.assertIn(f"| `{hashlib.sha256(contents).hexdigest()}` |", self.card)
        parameters = sum(math.prod(tensor.shape) for tensor in GgufFile(self.file).tensors.values())
        self.assertIn(f"| {parameters:,} |", self.card)

    def test_required_tasks_reach_what_is_required(self):
        rows = re.findall(r"^\| ([a-z, ]+?)(?: \(needs 90 %\))? \| (\d+) \| (\d+) \| [\d.]+ % \|$", self.card, re.MULTILINE)
        tasks = {name: {"right": int(right), "of": int(of)} for name, right, of in rows}
        self.assertGreaterEqual(len(tasks), 16)
        result = {"tasks": tasks, "required": table.REQUIRED}
        self.assertEqual(table.too_weak(result), [])
        self.assertIn(table.markdown(result), self.card)

    def test_a_weak_task_is_noticed(self):
        result = {"tasks": {name: {"right": 8, "of": 10} for name in table.REQUIRED[1:]}, "required": table.REQUIRED}
        self.assertEqual(table.too_weak(result), list(table.REQUIRED))
