"""How the images of each procedural family are drawn; `synth` gathers them into data sets.

Every family is a function (class, n, rng, shift) -> (n, 3, 32, 32) float32 in [0, 1]. Coordinates run from -1 to 1,
x to the right and y down.
"""

from __future__ import annotations

import numpy as np

SIDE = 32
Y, X = np.meshgrid(
    np.linspace(-1, 1, SIDE, dtype=np.float32), np.linspace(-1, 1, SIDE, dtype=np.float32), indexing="ij"
)

# Corners of the ten strokes: 0, 1, Z, 3, 4, 5, L, 7, N, V.
STROKES = (
    ((0, -0.9), (0.6, -0.4), (0.6, 0.4), (0, 0.9), (-0.6, 0.4), (-0.6, -0.4), (0, -0.9)),
    ((-0.4, -0.5), (0, -0.9), (0, 0.9)),
    ((-0.6, -0.8), (0.6, -0.8), (-0.6, 0.8), (0.6, 0.8)),
    ((-0.5, -0.9), (0.5, -0.5), (-0.1, 0), (0.5, 0.5), (-0.5, 0.9)),
    ((0.3, 0.9), (0.3, -0.9), (-0.6, 0.3), (0.7, 0.3)),
    ((0.6, -0.9), (-0.5, -0.9), (-0.5, -0.1), (0.5, 0.1), (0.4, 0.8), (-0.6, 0.8)),
    ((-0.5, -0.9), (-0.5, 0.9), (0.6, 0.9)),
    ((-0.6, -0.9), (0.6, -0.9), (-0.1, 0.9)),
    ((-0.6, 0.9), (-0.6, -0.9), (0.6, 0.9), (0.6, -0.9)),
    ((-0.6, -0.9), (0, 0.9), (0.6, -0.9)),
)


def strokes(k: int, n: int, rng: np.random.Generator, shift: float) -> np.ndarray:
    """Digit- and letter-like lines with shaken corners, light on dark."""
    corners = (np.array(STROKES[k]) + rng.normal(0, 0.1, (n, len(STROKES[k]), 2))).astype(np.float32)
    u, v = _placed(n, rng, place=0.3, size=(0.55, 0.9), angle=0.3, finer=shift)
    u, v = u.reshape(n, 1, -1), v.reshape(n, 1, -1)  # (n, 1, pixels)
    start, along = corners[:, :-1], np.diff(corners, axis=1)  # (n, lines, 2)
    du, dv = u - start[..., :1], v - start[..., 1:]  # (n, lines, pixels)
    on_line = (du * along[..., :1] + dv * along[..., 1:]) / (along**2).sum(-1, keepdims=True).clip(1e-6)
    on_line = on_line.clip(0, 1)
    distance = np.hypot(du - on_line * along[..., :1], dv - on_line * along[..., 1:]).min(1).reshape(n, SIDE, SIDE)
    ink = _soft(_column(rng.uniform(0.07, 0.16, n)) - distance, 0.05)
    return _painted(ink, _light(n, rng), _dark(n, rng))


def textures(k: int, n: int, rng: np.random.Generator, shift: float) -> np.ndarray:
    """Gratings of four angles and two widths, a chequer, and blotches."""
    angle = _column(np.pi / 4 * (k % 4) + rng.normal(0, 0.16, n))
    cycles = _column((2.0 if k < 4 else 3.5) * rng.uniform(0.8, 1.25, n) * (1 + 0.4 * shift))
    phase, other = _column(rng.uniform(0, 2 * np.pi, n)), _column(rng.uniform(0, 2 * np.pi, n))
    grating = np.sin(np.pi * cycles * (X * np.cos(angle) + Y * np.sin(angle)) + phase)
    if k == 8:
        grating = grating * np.sin(np.pi * cycles * (Y * np.cos(angle) - X * np.sin(angle)) + other)
    if k == 9:
        grating = np.sin(3 * _clouds(n, rng, 1 + 0.4 * shift))
    contrast = _column(rng.uniform(0.1, 0.6, n))
    return _painted(0.5 + 0.5 * contrast * np.tanh(2 * grating), _light(n, rng), _dark(n, rng))


def shapes(k: int, n: int, rng: np.random.Generator, shift: float) -> np.ndarray:
    """Disc, ring, square, frame, triangle, diamond, plus, saltire, half disc, two bars, on a cloudy ground."""
    u, v = _placed(n, rng, place=0.22, size=(0.45, 0.75), angle=0.12, finer=shift)
    a, b, r = abs(u), abs(v), np.hypot(u, v)
    box = np.maximum(a, b)
    inside = (  # positive inside the outline, about the distance to it
        lambda: 1 - r,
        lambda: 0.25 - abs(r - 0.75),
        lambda: 0.9 - box,
        lambda: 0.22 - abs(box - 0.7),
        lambda: np.minimum(0.7 - v, (0.9 + v) / 2 - a),
        lambda: (1.15 - a - b) / 1.4,
        lambda: np.maximum(np.minimum(0.3 - a, 1 - b), np.minimum(0.3 - b, 1 - a)),
        lambda: np.minimum(0.3 - abs(a - b) / 1.4, 0.9 - box),
        lambda: np.minimum(1 - r, -v),
        lambda: np.minimum(0.2 - abs(b - 0.55), 0.9 - a),
    )[k]()
    ground = _dark(n, rng)[..., None, None] * (1 + 0.35 * _clouds(n, rng, 1 + 0.4 * shift)[:, None])
    mask = _soft(inside, 0.08)[:, None]
    return mask * _light(n, rng)[..., None, None] + (1 - mask) * ground


def colours(k: int, n: int, rng: np.random.Generator, shift: float) -> np.ndarray:
    """Blotches of two hues: classes 0-4 opposite ones, whose mean is grey for all, classes 5-9 a quarter turn apart."""
    first, apart = (k / 10, 0.5) if k < 5 else ((k - 5) / 5, 0.25)
    hue = first + rng.normal(0, 0.035, (n, 2)) + np.array([0, apart])
    bright = rng.uniform(0.45, 0.9, (n, 2))
    rich = rng.uniform(0.4, 0.9, (n, 2))
    ink = _soft(_clouds(n, rng, 1 + 0.4 * shift) + _column(rng.normal(0, 0.3, n)), 0.15)
    pair = hsv(hue, rich, bright)
    return _painted(ink, pair[:, 0], pair[:, 1])


# Shared pieces


def hsv(hue: np.ndarray, rich: np.ndarray, bright: np.ndarray) -> np.ndarray:
    """(..., 3) RGB of hue (in turns), saturation and value."""
    turn = (hue[..., None] * 6 + np.array([0, 4, 2])) % 6
    pure = (abs(turn - 3) - 1).clip(0, 1)
    return (bright[..., None] * (1 - rich[..., None] * (1 - pure))).astype(np.float32)


def hue_turn(angle: float) -> np.ndarray:
    """(3, 3) rotation of RGB about the grey axis."""
    c, s = np.cos(angle), np.sin(angle) / np.sqrt(3)
    one = (1 - c) / 3
    return np.array([[c + one, one - s, one + s], [one + s, c + one, one - s], [one - s, one + s, c + one]], np.float32)


def _light(n: int, rng: np.random.Generator) -> np.ndarray:
    return hsv(rng.uniform(0, 1, n), rng.uniform(0.1, 0.7, n), rng.uniform(0.6, 1, n))


def _dark(n: int, rng: np.random.Generator) -> np.ndarray:
    return hsv(rng.uniform(0, 1, n), rng.uniform(0.1, 0.7, n), rng.uniform(0.1, 0.5, n))


def _column(values: np.ndarray) -> np.ndarray:
    """(n,) -> (n, 1, 1), to stand beside images."""
    return values.astype(np.float32)[:, None, None]


def _soft(inside: np.ndarray, width: float) -> np.ndarray:
    """0 outside, 1 inside, an edge of this width between."""
    return (0.5 + inside / width).clip(0, 1)


def _painted(ink: np.ndarray, colour: np.ndarray, ground: np.ndarray) -> np.ndarray:
    """ink (n, 32, 32) with a colour on a ground, both (n, 3)."""
    ink = ink.astype(np.float32)[:, None]
    return ink * colour[..., None, None] + (1 - ink) * ground[..., None, None]


def _placed(
    n: int, rng: np.random.Generator, place: float, size: tuple[float, float], angle: float, finer: float
) -> tuple[np.ndarray, np.ndarray]:
    """Each pixel's coordinates (n, 32, 32) in the frame of a thing set down at random."""
    right, down = _column(rng.uniform(-place, place, n)), _column(rng.uniform(-place, place, n))
    turn, scale = _column(rng.normal(0, angle, n)), _column(rng.uniform(*size, n) / (1 + 0.4 * finer))
    dx, dy = (X - right) / scale, (Y - down) / scale
    return dx * np.cos(turn) + dy * np.sin(turn), dy * np.cos(turn) - dx * np.sin(turn)


def _clouds(n: int, rng: np.random.Generator, finer: float) -> np.ndarray:
    """(n, 32, 32) smooth noise of unit variance: a sum of six random waves."""
    waves, total = 6, np.zeros((n, SIDE, SIDE), np.float32)
    for _ in range(waves):
        cycles, angle = _column(rng.uniform(0.8, 2.2, n) * finer), _column(rng.uniform(0, 2 * np.pi, n))
        phase = _column(rng.uniform(0, 2 * np.pi, n))
        total += np.sin(np.pi * cycles * (X * np.cos(angle) + Y * np.sin(angle)) + phase)
    return total * np.float32(np.sqrt(2 / waves))
