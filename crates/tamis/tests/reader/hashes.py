"""a key -> its digest (hi, lo), and the bits that a leaf takes of it: section 3 of docs/format.md."""

from xxh3 import M, fold, rotate, u64, xxh3_128


def scramble(x):
    z = x + 0x9E3779B97F4A7C15 & M
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


def high(a, b):
    return a * b >> 64


def salt(number):
    a = scramble(number)
    return a, scramble(a)


def child(of, number):
    a = scramble(of[0] ^ scramble(number))
    return a, scramble(a ^ of[1])


def salted(digest, by):
    return fold(digest[0] ^ by[0], digest[1] + by[1] & M)


def siphash(message, k0, k1):
    """SipHash-2-4 with 128 bits of output: bytes 0 to 7 and bytes 8 to 15, as words."""
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            v[0] = v[0] + v[1] & M
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = v[2] + v[3] & M
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & M
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & M
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    whole = len(message) // 8 * 8
    last = message[whole:] + bytes(7 - len(message) % 8) + bytes([len(message) & 255])
    for at in range(0, whole + 8, 8):
        word = u64(message, at) if at < whole else u64(last, 0)
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return first, v[0] ^ v[1] ^ v[2] ^ v[3]


def mix(digest, number):
    hi, lo = digest
    for r in range(3):
        a, b = child(salt(number), r)
        hi, lo = lo, hi ^ scramble(fold(lo ^ a, b | 1))
    return lo, hi


def of_hash(bits, width):
    """The digest that callers make of 64 or 128 bits of a hash of their own."""
    return mix((bits >> 64, bits & M) if width == 128 else (bits, bits ^ M), 0x646967657374)


def fields(parts):
    """The bytes of a key of several fields, each bytes or an integer."""
    out = b""
    for part in parts:
        if isinstance(part, bytes):
            out += b"\0" + len(part).to_bytes(8, "little") + part
        else:
            out += (b"\1" + part.to_bytes(8, "little")) if part >= 0 else (b"\2" + (~part).to_bytes(8, "little"))
    return out


class Hash:
    """The hash of a file. `number` is that of the head, `words` what follows it there, or the secret."""

    def __init__(self, number, words):
        self.number, self.words = number, words

    def bytes(self, key):
        if self.number in (1, 4):
            return siphash(key, *self.words)
        return xxh3_128(key, self.words[0])

    def integer(self, key):
        if self.number in (1, 4):
            return siphash((key & M).to_bytes(8, "little") + (b"\xff" if key < 0 else b""), *self.words)
        if key < 0:
            hi, lo = self.integer(~key)
            return hi ^ 0x6A09E667F3BCC908, lo ^ 0xBB67AE8584CAA73B
        product = (key ^ scramble(self.words[0])) * 0x9FB21C651E98DF25
        return product >> 64 ^ product & M, product & M

    def digest(self, hi, lo):
        if self.number in (1, 4):
            return siphash(lo.to_bytes(8, "little") + hi.to_bytes(8, "little"), *self.words)
        return hi, lo

    def plain(self, key):
        """A key of any type, before the mix: bytes, an integer, a tuple of fields, ('digest', hi, lo)."""
        if isinstance(key, bytes):
            return self.bytes(key)
        if isinstance(key, int):
            return self.integer(key)
        if key[0] == "digest":
            return self.digest(key[1], key[2])
        return self.bytes(fields(key))

    def mixed(self, digest):
        number = self.words[1] if self.number in (2, 3, 5) else 0
        return digest if self.number != 2 and number == 0 else mix(digest, number)

    def of(self, key):
        return self.mixed(self.plain(key))
