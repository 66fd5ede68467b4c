"""Simple pictures: one to five equal shapes of one colour on a plain ground, and questions about them.

A picture is decided by a few numbers (`Picture`), and drawn from them by signed distances, with NumPy or, in batches on a
GPU, with PyTorch: both have the functions used here under the same names.
"""

import math
import random
from dataclasses import dataclass

from talk import Exchange, Medium, seeded
from wording import every, sample

SHAPES = ("circle", "square", "triangle", "star", "cross", "ring")
COLOURS = {
    "red": (214, 32, 36), "orange": (245, 132, 20), "yellow": (244, 220, 40), "green": (38, 150, 60), "blue": (36, 74, 210),
    "purple": (126, 40, 160), "pink": (248, 140, 190), "black": (14, 14, 16), "white": (250, 250, 248),
}
GROUNDS = {
    "white": (250, 250, 250), "light grey": (205, 205, 208), "dark grey": (70, 72, 76), "black": (10, 10, 12), "sand": (226, 208, 172), "sky": (178, 208, 232),
}
NUMBERS = ("zero", "one", "two", "three", "four", "five")
_TOO_ALIKE = {("white", "white"), ("black", "black"), ("white", "light grey"), ("black", "dark grey"), ("yellow", "sand"), ("pink", "sand"), ("orange", "sand")}

#: Patches of 16 pixels across and down, multiples of 3. The first few are what images become at a budget of 70 rows, the
#: others at the usual 280.
SMALL_GRIDS = ((24, 24), (27, 21), (21, 27))
LARGE_GRIDS = ((48, 48), (57, 42), (42, 57), (66, 36))


@dataclass(frozen=True)
class Picture:
    shape: str
    colour: str
    count: int
    ground: str
    #: Patches across and down.
    grid: tuple[int, int]
    #: For each thing: centre x, centre y and radius as shares of the shorter side, and its turn.
    things: tuple[tuple[float, float, float, float], ...]
    tint: tuple[float, float, float]
    ground_tint: tuple[float, float, float]
    noise: float
    seed: int

    @property
    def size(self) -> tuple[int, int]:
        return self.grid[0] * 16, self.grid[1] * 16

    @property
    def rows(self) -> int:
        return self.grid[0] * self.grid[1] // 9


def picture(random_source: random.Random, grid: tuple[int, int], shape=None, colour=None, count=None) -> Picture:
    shape = shape or random_source.choice(SHAPES)
    colour = colour or random_source.choice(sorted(COLOURS))
    count = count or random_source.randint(1, 5)
    ground = random_source.choice([name for name in sorted(GROUNDS) if (colour, name) not in _TOO_ALIKE])
    short = min(grid)
    width, height = grid[0] / short, grid[1] / short
    turn = {"square": 0.25, "cross": 0.3, "triangle": 0.5, "star": 0.6}.get(shape, 0.0)
    largest = (0.42, 0.26, 0.21, 0.18, 0.16)[count - 1]
    while True:
        things = []
        radius = random_source.uniform(0.1 if count > 1 else 0.12, largest)
        for _ in range(60):
            r = radius * random_source.uniform(0.85, 1.0)
            x, y = random_source.uniform(r + 0.01, width - r - 0.01), random_source.uniform(r + 0.01, height - r - 0.01)
            if all(math.hypot(x - ox, y - oy) > (r + other) * 1.12 for ox, oy, other, _ in things):
                things.append((x, y, r, random_source.uniform(-turn, turn)))
                if len(things) == count:
                    break
        if len(things) == count:
            break
    jitter = lambda amount: tuple(random_source.uniform(-amount, amount) for _ in range(3))
    return Picture(shape, colour, count, ground, grid, tuple(things), jitter(10), jitter(6), random_source.choice((0, 0, 2, 5, 9)), random_source.getrandbits(31))


def distance(xp, shape: str, x, y):
    """How far points are outside of a shape of radius 1 around the origin; negative inside."""
    if shape == "circle":
        return xp.sqrt(x * x + y * y) - 0.95
    if shape == "ring":
        return abs(xp.sqrt(x * x + y * y) - 0.72) - 0.23
    if shape == "square":
        return xp.maximum(abs(x), abs(y)) - 0.72
    if shape == "cross":
        arms = xp.maximum(abs(x) - 0.27, abs(y) - 0.92)
        return xp.minimum(arms, xp.maximum(abs(y) - 0.27, abs(x) - 0.92))
    if shape == "triangle":
        slope = 0.5 * math.sqrt(3)
        return xp.maximum(slope * abs(x) - 0.5 * y, y) - 0.5
    # A star of five points, one of them up: every point of the plane is folded onto one half of a point of the star.
    cos, sin = math.cos(math.pi / 5), math.sin(math.pi / 5)
    angle = xp.arctan2(abs(x), -y)
    radius = xp.sqrt(x * x + y * y)
    sector = 2 * math.pi / 5
    angle = abs((angle + sector / 2) % sector - sector / 2)
    px, py = radius * xp.cos(angle), radius * xp.sin(angle)
    ix, iy = 0.42 * cos, 0.42 * sin
    nx, ny = iy, 0.98 - ix
    length = math.hypot(nx, ny)
    return ((px - 0.98) * nx + py * ny) / length


def draw(pictures: list[Picture], xp, device=None):
    """Pictures of one grid as values 0 to 255: an array [pictures, height, width, 3]."""
    width, height = pictures[0].size
    short = min(width, height)
    options = {} if device is None else {"device": device}
    number = lambda values: xp.asarray(values, dtype=xp.float32, **options)
    xs, ys = (xp.arange(width, dtype=xp.float32, **options) + 0.5) / short, (xp.arange(height, dtype=xp.float32, **options) + 0.5) / short
    drawn = []
    for entry in pictures:
        # All things of a picture at once: [things, height, width].
        cx, cy, radius, turn = (number(values)[:, None, None] for values in zip(*entry.things))
        x, y = (xs[None, None, :] - cx) / radius, (ys[None, :, None] - cy) / radius
        cos, sin = xp.cos(turn), xp.sin(turn)
        d = distance(xp, entry.shape, x * cos + y * sin, y * cos - x * sin)
        cover = xp.amax(xp.clip(0.5 - d * radius * short, 0, 1), 0)
        front = number([a + b for a, b in zip(COLOURS[entry.colour], entry.tint)])
        ground = number([a + b for a, b in zip(GROUNDS[entry.ground], entry.ground_tint)])
        drawn.append(ground + cover[:, :, None] * (front - ground))
    return xp.stack(drawn)


def add_noise(images, pictures: list[Picture], normal):
    """Grain. `normal(shape)` gives normal numbers of the array's kind."""
    for index, entry in enumerate(pictures):
        if entry.noise:
            images[index] = images[index] + entry.noise * normal(images[index].shape)
    return images.clip(0, 255)


def patches(images):
    """What the vision tower reads: [pictures, patches, 768], values 0 to 1, a patch in the order row, column, channel."""
    count, height, width, _ = images.shape
    cut = (images.round() / 255).reshape(count, height // 16, 16, width // 16, 16, 3)
    cut = cut.swapaxes(2, 3) if not hasattr(cut, "permute") else cut.permute(0, 1, 3, 2, 4, 5)
    return cut.reshape(count, (height // 16) * (width // 16), 768)


# ---- questions

_ASK = {
    "shape": ("What shape is (this|that|it|in the picture|shown)?", "(Which|What) shape do you see?", "(Name|Tell me) the shape.", "What kind of shape is (this|in the image)?", "What shape (are they|is drawn)?", "What is the shape (here|in the picture)?"),
    "colour": ("What (colour|color) is (it|this|the shape|the thing|that)?", "(Which|What) (colour|color) do you see?", "(Name|Tell me) the (colour|color).", "What (colour|color) (are they|does it have|has it)?", "What is the (colour|color) of the (shape|shapes|thing|things)?"),
    "count": ("How many (shapes|things|objects) (are there|are in the picture|do you see|are shown)?", "Count the (shapes|things|objects).", "How many are there?", "(What|Tell me) (is |)the number of (shapes|things|objects)?", "How many do you see?"),
    "describe": ("(Describe|Explain) (the|this) (picture|image).", "What (do you see|is this|is that|is in the picture|is in this image|does it show)?", "What is (shown|drawn) (here|in the picture)?", "What (picture|image) is this?", "Look at this. What is it?"),
}
_TEST = {
    "shape": ("Can you tell me what shape is shown here?", "Which shape is in this picture?"),
    "colour": ("Can you tell me what colour it has?", "Which colour is the thing in the picture?"),
    "count": ("Can you count the shapes in the picture?", "How many things are shown here?"),
    "describe": ("Tell me what is in this picture.", "What do you see in the image?"),
}


def _exchange(entry: Picture, kind: str, question: str, medium: Medium | None) -> Exchange:
    plural = entry.shape + ("es" if entry.shape == "cross" else "s")
    number = NUMBERS[entry.count]
    what = f"{number} {entry.colour} {entry.shape if entry.count == 1 else plural}"
    word = {"shape": entry.shape, "colour": entry.colour, "count": number, "describe": None}[kind]
    if kind == "describe":
        answer = f"I see {what}."
    elif kind == "count":
        answer = f"There {'is' if entry.count == 1 else 'are'} {number}."
    else:
        answer = f"It is {'a ' if kind == 'shape' else ''}{word}." if entry.count == 1 else f"They are {plural if kind == 'shape' else word}."
    return Exchange(f"image {kind}", question, answer, f"I see {what}.", word=word, medium=medium, key=answer)


def conversation(random_source: random.Random, entry: Picture) -> list[Exchange]:
    """Two or three questions about one picture; the picture comes with the first."""
    kinds = random_source.sample(sorted(_ASK), random_source.choice((2, 3)))
    medium = Medium("image", entry, entry.rows)
    return [_exchange(entry, kind, sample(random_source.choice(_ASK[kind]), random_source), medium if i == 0 else None) for i, kind in enumerate(kinds)]


def tests(count: int, grids=(SMALL_GRIDS[0], LARGE_GRIDS[0]), seed: str = "") -> list[Exchange]:
    """New pictures, and questions in held-out wordings. Each seed gives others."""
    random_source, found = seeded("image tests", *([seed] if seed else [])), []
    for number in range(count):
        entry = picture(random_source, grids[number % len(grids)])
        kind = sorted(_TEST)[number // len(grids) % len(_TEST)]
        question = random_source.choice(every(random_source.choice(_TEST[kind])))
        found.append(_exchange(entry, kind, question, Medium("image", entry, entry.rows)))
    return found
