"""What the facts name exists: buttons in the app, commands and options in the program, codes in the guide."""

import re
import unittest
from pathlib import Path

import facts

ROOT = Path(__file__).resolve().parents[3]

# Labels of the app that changed after the model in the repository was trained. The facts change together with the next training, so that
# they say what the model answers; then these lines go.
RENAMED = {"Ask this instead", "Export all conversations", "Import conversations", "Think first", "Longest reply"}
# The same for codes of errors: models without a tower now say `model.no_images` and `model.no_audio`.
RENAMED_CODES = {"input.media"}


def _group(name: str) -> list[facts.Fact]:
    return [fact for fact in facts.all_facts() if fact.name.startswith(f"{name}: ")]


class Truth(unittest.TestCase):
    def test_buttons_are_in_the_app(self):
        files = (ROOT / "packages" / "app" / "src").rglob("*.ts*")
        source = "\n".join(path.read_text(encoding="utf-8") for path in files)
        for fact in facts.all_facts():
            for label in re.findall(r'"([A-Z][^"]+)"', fact.answer):
                self.assertNotEqual(label in source, label in RENAMED, fact.answer)

    def test_settings_are_in_the_app(self):
        source = (ROOT / "packages" / "app" / "src" / "state" / "settings.ts").read_text(encoding="utf-8")
        for fact in _group("settings"):
            self.assertNotEqual(f'label: "{fact.topic}"' in source, fact.topic in RENAMED, fact.topic)

    def test_commands_and_options_are_in_the_program(self):
        files = sorted((ROOT / "crates" / "cli" / "src" / "arguments").glob("*.rs"))
        source = "\n".join(path.read_text(encoding="utf-8") for path in files)
        for fact in _group("commands"):
            # A command, or another name of one.
            command = rf'(?m)^    {fact.topic.capitalize()}\(|alias(es)? = .*"{fact.topic}"'
            self.assertTrue(re.search(command, source), fact.topic)
        for fact in _group("flags"):
            self.assertTrue(re.search(rf"\b{fact.topic[2:].replace('-', '_')}: ", source), fact.topic)

    def test_codes_options_and_addresses_are_in_the_guides(self):
        guides = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "guide").glob("*.md"))
        for fact in _group("error codes") + _group("load options") + _group("defaults"):
            self.assertNotEqual(f"`{fact.topic}`" in guides, fact.topic in RENAMED_CODES, fact.topic)
        for fact in _group("addresses of the server"):
            self.assertTrue(fact.topic in guides, fact.topic)

    def test_libraries_are_crates(self):
        for fact in _group("libraries"):
            self.assertTrue((ROOT / "crates" / fact.topic.removeprefix("rullama-")).is_dir(), fact.topic)
