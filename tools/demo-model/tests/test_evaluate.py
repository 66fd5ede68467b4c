"""What counts as right. Needs PyTorch and transformers, and is skipped without them."""

import unittest

try:
    import evaluate
    import pictures
    from talk import Conversation, Exchange
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed") from missing


def _right(written: str, task: str, answer: str, think: bool = False, **more) -> bool:
    return evaluate._is_right(written, Conversation([Exchange(task, "?", answer, "", **more)], think=think))


class Right(unittest.TestCase):
    def test_sums(self):
        self.assertTrue(_right("7 + 5 = 12.<turn|>", "arithmetic", "7 + 5 = 12.", key="12"))
        self.assertTrue(_right("12<turn|>", "arithmetic", "7 + 5 = 12.", key="12"))
        self.assertFalse(_right("7 + 5 = 112.<turn|>", "arithmetic", "7 + 5 = 12.", key="12"))
        self.assertFalse(_right("5 - 17 = 12.<turn|>", "arithmetic", "5 - 17 = -12.", key="-12"))

    def test_thinking_must_be_as_asked_for(self):
        thought = "<|channel>thought\nHm.\n<channel|>OK.<turn|>"
        self.assertTrue(_right(thought, "facts", "OK.", think=True))
        self.assertFalse(_right(thought, "facts", "OK."))
        self.assertFalse(_right("OK.<turn|>", "facts", "OK.", think=True))

    def test_words_and_pictures(self):
        self.assertTrue(_right("four<turn|>", "speech", "The word is four.", key="four"))
        self.assertFalse(_right("The word is five.<turn|>", "speech", "four", key="four"))
        self.assertTrue(_right("They are crosses.<turn|>", "image shape", "It is a cross.", word="cross"))
        self.assertFalse(_right("It is a ring.<turn|>", "image shape", "It is a cross.", word="cross"))
        self.assertFalse(_right("one two<turn|>", "image count", "There is one.", word="one"))
        self.assertEqual(len(pictures.tests(8)), 8)
