"""bytes -> XXH3 with 64 or 128 bits, in plain Python: the published algorithm, with its default secret."""

M = (1 << 64) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def u64(data, at):
    return int.from_bytes(data[at : at + 8], "little")


def u32(data, at):
    return int.from_bytes(data[at : at + 4], "little")


def fold(a, b):
    p = a * b
    return (p & M) ^ (p >> 64)


def swap(word, size):
    return int.from_bytes(word.to_bytes(size, "little"), "big")


def rotate(x, n):
    return (x << n | x >> (64 - n)) & M


def avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & M
    return h ^ h >> 32


def avalanche_64(h):
    h = (h ^ h >> 33) * P2 & M
    h = (h ^ h >> 29) * P3 & M
    return h ^ h >> 32


def mix16(data, at, key, seed):
    return fold(u64(data, at) ^ (u64(SECRET, key) + seed & M), u64(data, at + 8) ^ (u64(SECRET, key + 8) - seed & M))


def mix32(acc, data, one, two, key, seed):
    lo = (acc[0] + mix16(data, one, key, seed) & M) ^ (u64(data, two) + u64(data, two + 8) & M)
    hi = (acc[1] + mix16(data, two, key + 16, seed) & M) ^ (u64(data, one) + u64(data, one + 8) & M)
    return lo, hi


def accumulate(acc, data, at, secret):
    """A stripe of 64 bytes."""
    for i in range(8):
        value = u64(data, at + 8 * i)
        keyed = value ^ secret[i]
        acc[i ^ 1] += value
        acc[i] += (keyed & 0xFFFFFFFF) * (keyed >> 32)


def long(data, seed):
    """More than 240 bytes: the accumulators, and the secret that the seed makes."""
    secret = b"".join(
        ((u64(SECRET, i) + (seed if i % 16 == 0 else -seed)) & M).to_bytes(8, "little") for i in range(0, 192, 8)
    )
    words = [[u64(secret, at + 8 * i) for i in range(8)] for at in range(192 - 63)]
    acc = [P32_3, P1, P2, P3, P4, P32_2, P5, P32_1]
    blocks = (len(data) - 1) // 1024
    for block in range(blocks):
        for stripe in range(16):
            accumulate(acc, data, block * 1024 + stripe * 64, words[8 * stripe])
        for i in range(8):
            x = acc[i] & M
            acc[i] = (x ^ x >> 47 ^ words[128][i]) * P32_1 & M
    for stripe in range((len(data) - 1 - blocks * 1024) // 64):
        accumulate(acc, data, blocks * 1024 + stripe * 64, words[8 * stripe])
    accumulate(acc, data, len(data) - 64, words[121])
    return [x & M for x in acc], secret


def merge(acc, secret, at, result):
    for i in range(4):
        result += fold(acc[2 * i] ^ u64(secret, at + 16 * i), acc[2 * i + 1] ^ u64(secret, at + 16 * i + 8))
    return avalanche(result & M)


def xxh3_64(data):
    """Seed 0."""
    n = len(data)
    if n > 240:
        acc, secret = long(data, 0)
        return merge(acc, secret, 11, n * P1 & M)
    if n > 128:
        acc = n * P1 + sum(mix16(data, 16 * i, 16 * i, 0) for i in range(8))
        acc = avalanche(acc & M) + sum(mix16(data, 16 * i, 16 * (i - 8) + 3, 0) for i in range(8, n // 16))
        return avalanche(acc + mix16(data, n - 16, 119, 0) & M)
    if n > 16:
        acc = n * P1
        for i in range((n - 1) // 32 + 1):
            acc += mix16(data, 16 * i, 32 * i, 0) + mix16(data, n - 16 * (i + 1), 32 * i + 16, 0)
        return avalanche(acc & M)
    if n > 8:
        lo = u64(data, 0) ^ u64(SECRET, 24) ^ u64(SECRET, 32)
        hi = u64(data, n - 8) ^ u64(SECRET, 40) ^ u64(SECRET, 48)
        return avalanche(n + swap(lo, 8) + hi + fold(lo, hi) & M)
    if n > 3:
        h = (u32(data, n - 4) + (u32(data, 0) << 32)) ^ u64(SECRET, 8) ^ u64(SECRET, 16)
        h = (h ^ rotate(h, 49) ^ rotate(h, 24)) * 0x9FB21C651E98DF25 & M
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & M
        return h ^ h >> 28
    if n > 0:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return avalanche_64(combined ^ u32(SECRET, 0) ^ u32(SECRET, 4))
    return avalanche_64(u64(SECRET, 56) ^ u64(SECRET, 64))


def close(acc, n, seed):
    lo = acc[0] + acc[1] & M
    hi = acc[0] * P1 + acc[1] * P4 + (n - seed) * P2 & M
    return -avalanche(hi) & M, avalanche(lo)


def xxh3_128(data, seed=0):
    """The upper and the lower 64 bits."""
    n = len(data)
    if n > 240:
        acc, secret = long(data, seed)
        return merge(acc, secret, 117, ~(n * P2) & M), merge(acc, secret, 11, n * P1 & M)
    if n > 128:
        acc = (n * P1 & M, 0)
        for i in range(4):
            acc = mix32(acc, data, 32 * i, 32 * i + 16, 32 * i, seed)
        acc = (avalanche(acc[0]), avalanche(acc[1]))
        for i in range(4, n // 32):
            acc = mix32(acc, data, 32 * i, 32 * i + 16, 32 * (i - 4) + 3, seed)
        return close(mix32(acc, data, n - 16, n - 32, 103, -seed & M), n, seed)
    if n > 16:
        acc = (n * P1 & M, 0)
        for i in reversed(range((n - 1) // 32 + 1)):
            acc = mix32(acc, data, 16 * i, n - 16 * (i + 1), 32 * i, seed)
        return close(acc, n, seed)
    if n > 8:
        lo, hi = u64(data, 0), u64(data, n - 8)
        p = (lo ^ hi ^ (u64(SECRET, 32) ^ u64(SECRET, 40)) - seed & M) * P1
        hi ^= (u64(SECRET, 48) ^ u64(SECRET, 56)) + seed & M
        high = (p >> 64) + hi + (hi & 0xFFFFFFFF) * (P32_2 - 1) & M
        low = (p & M) + (n - 1 << 54) & M ^ swap(high, 8)
        p = low * P2
        return avalanche((p >> 64) + high * P2 & M), avalanche(p & M)
    if n > 3:
        seed ^= swap(seed & 0xFFFFFFFF, 4) << 32
        keyed = (u32(data, 0) + (u32(data, n - 4) << 32)) ^ (u64(SECRET, 16) ^ u64(SECRET, 24)) + seed & M
        p = keyed * (P1 + (n << 2) & M)
        lo, hi = p & M, p >> 64
        hi = hi + (lo << 1) & M
        lo ^= hi >> 3
        lo = (lo ^ lo >> 35) * 0x9FB21C651E98DF25 & M
        return avalanche(hi), lo ^ lo >> 28
    if n > 0:
        low = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        high = swap(low, 4)
        high = (high << 13 | high >> 19) & 0xFFFFFFFF
        return (
            avalanche_64(high ^ (u32(SECRET, 8) ^ u32(SECRET, 12)) - seed & M),
            avalanche_64(low ^ (u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & M),
        )
    return (
        avalanche_64(seed ^ u64(SECRET, 80) ^ u64(SECRET, 88)),
        avalanche_64(seed ^ u64(SECRET, 64) ^ u64(SECRET, 72)),
    )
