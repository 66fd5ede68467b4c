"""Pictures show what their labels say."""

import unittest

import numpy as np

import pictures
from talk import seeded


def _pieces(mask: np.ndarray) -> int:
    """How many connected pieces a mask has; corners connect, because the tips of stars are thin."""
    left, found = mask.copy(), 0
    while left.any():
        found += 1
        edge = [tuple(np.argwhere(left)[0])]
        left[edge[0]] = False
        while edge:
            y, x = edge.pop()
            for ny, nx in ((y + j, x + i) for j in (-1, 0, 1) for i in (-1, 0, 1)):
                if 0 <= ny < left.shape[0] and 0 <= nx < left.shape[1] and left[ny, nx]:
                    left[ny, nx] = False
                    edge.append((ny, nx))
    return found


class Pictures(unittest.TestCase):
    def test_count_and_colour(self):
        random_source = seeded("picture test")
        for number in range(24):
            entry = pictures.picture(random_source, (12, 15), shape=pictures.SHAPES[number % 6])
            drawn = pictures.draw([entry], np)[0]
            front, ground = np.array(pictures.COLOURS[entry.colour]), np.array(pictures.GROUNDS[entry.ground])
            nearer = ((drawn - front) ** 2).sum(2) < ((drawn - ground) ** 2).sum(2)
            with self.subTest(f"{number}: {entry.count} {entry.colour} {entry.shape} on {entry.ground}"):
                self.assertEqual(_pieces(nearer), entry.count)
                middle = drawn[nearer].mean(0)
                self.assertEqual(min(pictures.COLOURS, key=lambda name: ((middle - pictures.COLOURS[name]) ** 2).sum()), entry.colour)

    def test_shapes_differ_in_how_much_of_their_circle_they_fill(self):
        axis = np.linspace(-1, 1, 401)
        x, y = np.meshgrid(axis, axis)
        filled = {shape: float((pictures.distance(np, shape, x, y) < 0).sum()) * (2 / 400) ** 2 for shape in pictures.SHAPES}
        self.assertAlmostEqual(filled["circle"], np.pi * 0.95**2, delta=0.02)
        self.assertAlmostEqual(filled["square"], 1.44**2, delta=0.02)
        self.assertEqual(len({round(area, 2) for area in filled.values()}), len(filled))
        for shape in pictures.SHAPES:
            outside = pictures.distance(np, shape, x, y)[x**2 + y**2 > 1.05]
            self.assertTrue((outside > 0).all(), shape)

    def test_patches_keep_every_value(self):
        image = np.arange(48 * 96 * 3, dtype=np.float32).reshape(1, 48, 96, 3) % 256
        cut = pictures.patches(image)
        self.assertEqual(cut.shape, (1, 18, 768))
        self.assertEqual(cut[0, 7, (2 * 16 + 3) * 3 + 1] * 255, image[0, 16 + 2, 16 + 3, 1])

    def test_answers_fit_the_picture(self):
        for exchange in pictures.tests(80):
            entry = exchange.medium.content
            self.assertIn({"image shape": entry.shape, "image colour": entry.colour, "image count": pictures.NUMBERS[entry.count], "image describe": entry.colour}[exchange.task], exchange.answer)
            self.assertEqual(exchange.medium.text.count("<|image|>"), entry.rows)
