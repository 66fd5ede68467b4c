"""Files are copied and written so that they come back as they were."""

import tempfile
import unittest
from pathlib import Path

import references
from gguf_file import GgufFile

MODEL = Path(__file__).resolve().parents[3] / "testdata" / "gguf" / "micro-e2b-Q8_0.gguf"


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "file"

    def tearDown(self):
        self.folder.cleanup()

    def test_a_copy_of_everything_is_the_same_file(self):
        GgufFile(MODEL).copy(self.path, lambda _: True)
        self.assertEqual(self.path.read_bytes(), MODEL.read_bytes())

    def test_a_copy_has_what_is_kept(self):
        original = GgufFile(MODEL)
        original.copy(self.path, lambda name: not name.startswith("blk.1."))
        copy = GgufFile(self.path)
        self.assertEqual(copy.metadata, original.metadata)
        self.assertEqual(list(copy.tensors), [name for name in original.tensors if not name.startswith("blk.1.")])
        for name, tensor in copy.tensors.items():
            expected = original.tensors[name]
            self.assertEqual((tensor.format, tensor.shape, tensor.bytes.tobytes()), (expected.format, expected.shape, expected.bytes.tobytes()))

    def test_references_come_back(self):
        about, entries = {"file": "demo.gguf", "steps": 3}, [{"prompt": "\n“ä”", "ids": [1, 2]}, {"prompt": "", "ids": []}]
        references.write(self.path, about, "prompts", entries)
        self.assertEqual(references.read(self.path, "prompts"), (about, entries))
        self.assertEqual(len(self.path.read_text(encoding="utf-8").splitlines()), 8)
