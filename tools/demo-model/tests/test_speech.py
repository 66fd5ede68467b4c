"""Sounds are as long as they say, and held-out voices stay held out. Needs no espeak-ng: the clips here are tones."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

import speech
from talk import seeded


def _clips() -> speech.Clips:
    time = np.arange(6000) / speech.RATE
    samples = [0.5 * np.sin(2 * np.pi * (200 + 40 * i) * time).astype(np.float32) for i in range(len(speech.WORDS)) for _ in range(3)]
    words = np.repeat(np.arange(len(speech.WORDS)), 3).astype(np.int16)
    return speech.Clips(samples, words, np.tile([False, False, True], len(speech.WORDS)))


class Speech(unittest.TestCase):
    def test_clips_survive_their_file(self):
        clips = _clips()
        with tempfile.TemporaryDirectory() as folder:
            clips.save(Path(folder) / "speech.npz")
            read = speech.Clips.load(Path(folder) / "speech.npz")
        self.assertEqual(len(read.samples), len(clips.samples))
        self.assertLess(np.abs(read.samples[4] - clips.samples[4]).max(), 0.015)

    def test_rows_follow_the_length(self):
        for samples, rows in ((161, 1), (321, 1), (8000, 13), (12345, 20), (16000, 25)):
            self.assertEqual(speech.Sound((), (), (), samples, 1, 0, 0, 0).rows, rows)

    def test_sounds_fit(self):
        clips, random_source = _clips(), seeded("sounds")
        for words, lengths in speech.LENGTHS.items():
            for length in lengths:
                entry = speech.sound(random_source, clips, tuple(range(words)), length)
                end = entry.starts[-1] + len(clips.samples[entry.clips[-1]]) / entry.speeds[-1]
                self.assertLessEqual(end, length)

    def test_tests_are_spoken_by_held_out_voices(self):
        clips = _clips()
        tests = speech.tests(clips, 60)
        self.assertTrue(all(clips.held_out[list(e.medium.content.clips)].all() for e in tests))
        self.assertEqual({e.key for e in tests[:60]}, set(speech.WORDS))
        self.assertFalse(set(speech.HELD_OUT_SPEAKERS) & set(speech._SPEAKERS))
