"""The renderer writes what rullama's own does: both are held against the same prompts."""

import json
import unittest
from pathlib import Path

import examples
from chat import Call, Message, render
from talk import seeded

PROMPTS = Path(__file__).resolve().parents[3] / "testdata" / "chat" / "prompts.json"
#: Schemas and media that the demo's data does not have; its renderer leaves them out.
_NOT_NEEDED = ("image", "medi", "tags", "schema", "union", "anyOf", "nested", "JSON in a string", "numbered")


def _messages(case: dict) -> list[Message]:
    names, messages = {}, []
    for message in case["messages"]:
        calls = message.get("tool_calls") or []
        names.update({call.get("id"): call["function"]["name"] for call in calls})
        name = names.get(message.get("tool_call_id")) or message.get("tool_name") or ""
        messages.append(Message(message["role"], message.get("content") or "", message.get("thinking") or "", [Call(c["function"]["name"], c["function"]["arguments"]) for c in calls], name))
    return messages


class Rendering(unittest.TestCase):
    def test_prompts_are_those_of_the_product(self):
        cases = [case for case in json.loads(PROMPTS.read_text(encoding="utf-8")) if not any(word in case["name"] for word in _NOT_NEEDED)]
        self.assertGreater(len(cases), 40)
        for case in cases:
            with self.subTest(case["name"]):
                self.assertEqual(render(_messages(case), case["tools"] or [], case["think"], case["variant"]), case["prompt"])

    def test_what_is_written_continues_what_is_read(self):
        """Segments are one text: what the model writes, then rendered again as history, is the same."""
        random_source = seeded("rendering test")
        for _ in range(500):
            conversation = examples.conversation(random_source)
            text = "".join(part for part, _ in conversation.segments())
            self.assertTrue((text + "\n").startswith(render(conversation.messages()[:-1], conversation.tools, conversation.think)))
            self.assertTrue(text.endswith("<turn|>"))
