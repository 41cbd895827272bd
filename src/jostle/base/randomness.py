"""Named, independent, counter-based streams of random numbers.

A stream is a pure function: the numbers of (input, token, draw) depend on the seed, the stream's name and these three
integers, and on nothing else. Any batch size, order, worker count or device therefore sees the same noise, two models
can be compared on the same noise, and a killed run continues with the numbers it would have had.

The generator is Philox-4x32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"),
vectorised over counters in numpy. It is checked against the authors' known-answer vectors.
"""

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.base import checks

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW_WORD, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)
_ROUNDS = 10
_TORCH_SEEDS = 2**64  # how many seeds a generator of torch tells apart
_WORDS_AT_ONCE = 2**15  # 64 KiB for each word of the counter; 2**13 took 18 nanoseconds a number instead of 11


def torch_seed(seed: int) -> int:
    """The seed of torch's own generators, which draw random weights: any integer, of which they take 64 bits.

    >>> torch_seed(3), torch_seed(2**64 + 3), torch_seed(-1) == 2**64 - 1
    (3, 3, True)
    """
    return checks.whole("seed", seed) % _TORCH_SEEDS


def philox(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Philox-4x32-10 of every column of ``counter``.

    Arguments:
        counter: (4, count), each entry a 32-bit word held in 64 bits, so that a product of two words fits.
        key: two 32-bit words.

    Returns:
        (4, count) random 32-bit words.
    """
    a, b, c, d = counter.copy()
    first, second = np.empty_like(a), np.empty_like(a)
    for turn in range(_ROUNDS):
        left, right = (np.uint64((word + turn * step) & 0xFFFFFFFF) for word, step in zip(key, _KEY_STEPS, strict=True))
        np.multiply(a, _MULTIPLIERS[0], out=first)
        np.multiply(c, _MULTIPLIERS[1], out=second)
        np.right_shift(second, _WORD, out=a)
        a ^= b
        a ^= left
        np.right_shift(first, _WORD, out=c)
        c ^= d
        c ^= right
        np.bitwise_and(second, _LOW_WORD, out=b)
        np.bitwise_and(first, _LOW_WORD, out=d)
    return np.stack([a, b, c, d])


@dataclass(frozen=True)
class Stream:
    """Uniform numbers addressed by (input, token, draw).

    >>> noise = Stream(seed=0, name="noise")
    >>> together = noise.uniforms([4, 7], [1, 1], [0, 0], size=3)
    >>> alone = noise.uniforms([7], [1], [0], size=3)
    >>> bool((together[1] == alone[0]).all())
    True

    Arguments:
        seed: any integer; 0 is a seed like every other.
        name: streams of different names are independent under one seed.
    """

    seed: int
    name: str
    _key: tuple[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(f"{int(self.seed)}/{self.name}".encode()).digest()
        object.__setattr__(self, "_key", (int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")))

    def uniforms(self, inputs: ArrayLike, tokens: ArrayLike, draws: ArrayLike, size: int) -> NDArray[np.float64]:
        """(len(inputs), size) numbers strictly between 0 and 1, on a grid of 2^-32."""
        address = np.stack([np.asarray(part, dtype=np.uint64) for part in (draws, tokens, inputs)])  # (3, count)
        count, blocks = address.shape[1], -(-size // 4)
        numbers = np.empty((count, size))
        step = max(1, _WORDS_AT_ONCE // max(4 * blocks, 1))
        for start in range(0, count, step):
            rows = slice(start, start + step)
            numbers[rows] = self._words(address[:, rows], blocks)[:, :size]
        numbers += 0.5
        numbers *= 2.0**-32
        return numbers

    def _words(self, address: NDArray[np.uint64], blocks: int) -> NDArray[np.uint64]:
        """(count, 4 * blocks) random words of these addresses (3, count)."""
        count = address.shape[1]
        counter = np.empty((4, count, blocks), dtype=np.uint64)
        counter[0] = np.arange(blocks, dtype=np.uint64)
        counter[1:] = address[:, :, None]
        words = philox(counter.reshape(4, -1), self._key)  # (4, count * blocks)
        return words.reshape(4, count, blocks).transpose(1, 2, 0).reshape(count, blocks * 4)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """A random order of 0 .. count - 1, the same for a given seed, name and count."""
        keys = self.uniforms(np.arange(count), np.zeros(count), np.zeros(count), size=2)
        return np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)
