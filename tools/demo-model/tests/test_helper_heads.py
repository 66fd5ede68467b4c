"""Labels of the helper heads lie where the things are. Needs PyTorch, and is skipped without it."""

import unittest

try:
    import helper_heads
    import pictures
    from talk import seeded
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed") from missing


class Labels(unittest.TestCase):
    def test_every_thing_has_its_middle(self):
        random_source = seeded("labels")
        for grid in pictures.SMALL_GRIDS + pictures.LARGE_GRIDS:
            entry = pictures.picture(random_source, grid, count=3)
            made = helper_heads.labels([entry])
            self.assertEqual(tuple(made["middles"].shape), (1, grid[1] // 3, grid[0] // 3))
            self.assertEqual(made["count"].item(), 2)
            self.assertEqual(pictures.SHAPES[made["shape"].item()], entry.shape)
            self.assertGreaterEqual(made["middles"].sum().item(), 2)
