"""geometry and payload -> what a leaf says of a digest: sections 6 to 14 of docs/format.md."""

from frame import check, known
from hashes import child, fold, high, salted, scramble
from xxh3 import M, u64


def bits_at(payload, at, count):
    """Bits of a payload from bit `at` on, bit 0 being the lowest of byte 0."""
    word = int.from_bytes(payload[at // 8 : (at + count + 7) // 8], "little")
    return word >> at % 8 & (1 << count) - 1


def parity(x):
    return bin(x).count("1") & 1


class SplitBlock:
    ODD = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]

    def __init__(self, read, salt):
        self.salt, self.blocks = salt, read.varint(0, 1 << 40)
        read.varint()
        self.length = 32 * self.blocks

    def says(self, payload, digest):
        if not self.blocks:
            return False
        h = salted(digest, self.salt)
        block = high(h, self.blocks)
        bits = ((h & 0xFFFFFFFF) * odd % (1 << 32) >> 27 for odd in self.ODD)
        return all(bits_at(payload, 256 * block + 32 * lane + bit, 1) for lane, bit in enumerate(bits))


class Classic:
    def __init__(self, read, salt):
        self.salt, self.bits, self.hashes = salt, read.varint(0, 1 << 48), read.varint(1, 32)
        read.varint()
        self.length = (self.bits + 7) // 8

    def says(self, payload, digest):
        if not self.bits:
            return False
        a, b = salted(digest, self.salt), salted(digest, child(self.salt, 0))
        for _ in range(self.hashes):
            if not bits_at(payload, high(a, self.bits), 1):
                return False
            a, b = a + b & M, b * 0xD1342543DE82EF95 & M
        return True


class Fuse:
    def __init__(self, read, salt):
        self.probes, self.length, self.width = known(read.varint(), [0, 3, 4], "number of probes"), 0, 256
        if not self.probes:
            return
        self.width, log = read.varint(256, 8192), read.varint(0, 18)
        starts, number = read.varint(1, 1 << 40 >> log), read.varint(0, (1 << 32) - 1)
        self.salt, self.len = child(salt, number), 1 << log
        self.range = starts << log
        slots = self.range + (self.probes - 1) * self.len
        self.r, part = divmod(self.width, 256)
        wide = -(-self.range * part // 256)
        self.cut = self.range - wide if wide else 1 << 63
        self.whole = self.width in (2048, 4096, 8192)
        self.length = slots * self.width // 2048 if self.whole else self.bit(slots - 1) // 8 + 8

    def bit(self, cell):
        return cell * self.r + max(0, cell - self.cut)

    def hash(self, digest):
        return salted(digest, self.salt) & ~63

    def word(self, payload, digest):
        """The xor of the cells, and how many bits of it count."""
        if not self.probes:
            return 0, 0
        h = self.hash(digest)
        first = high(h, self.range)
        w = [0, h >> 6, h >> 24, (h * 0xD6E8FEB86659FD93 & M) >> 46]
        bits, value = self.r + (first >= self.cut), 0
        for j in range(self.probes):
            slot = (first + j * self.len) ^ w[j] % self.len
            value ^= bits_at(payload, slot * self.width // 256 if self.whole else self.bit(slot), bits)
        return value, bits

    def value(self, payload, digest):
        return self.word(payload, digest)[0]

    def says(self, payload, digest):
        if not self.probes:
            return False
        h = self.hash(digest)
        value, bits = self.word(payload, digest)
        return value == (h >> 6 ^ h >> 32) & (1 << bits) - 1


class Ribbon:
    # Octets of a band, rows of a bucket, bits and values of thresholds.
    SHAPES = [
        (8, 256, 0, [0]),
        (8, 256, 8, range(256)),
        (16, 512, 0, [0]),
        (16, 512, 2, [0, 40, 128, 512]),
        (8, 256, 2, [0, 24, 64, 256]),
    ]

    def __init__(self, read, salt):
        self.number = read.varint(0, (1 << 32) - 1)
        self.salt, self.width, self.skip = child(salt, self.number), read.varint(256, 8192), read.varint(0, 63)
        self.r, self.part = divmod(self.width, 256)
        self.levels, self.length = [], 0
        for _ in range(read.varint(0, 64)):
            shape = self.SHAPES[known(read.varint(), range(5), "shape of a ribbon")]
            attempt, octets = read.varint(0, (1 << 32) - 1), read.varint(1, 1 << 37)
            rows = 8 * octets
            cut = rows * (256 - self.part) // 2048 if self.part else 1 << 63
            thresholds = self.length + self.at(octets + shape[0] - 1, cut)
            self.levels.append((shape, attempt, rows, cut, self.length, thresholds))
            buckets = -(-rows // shape[1])
            self.length = thresholds + (buckets * shape[2] + 7) // 8

    def at(self, octet, cut):
        return octet * self.r + max(0, octet - cut)

    @staticmethod
    def place(c):
        return fold(c ^ 0x8EBC6AF09C88C6E3, 0xE7037ED1A0B428DB)

    def word(self, payload, digest):
        """Value and fingerprint; none if no level has the key."""
        c = g = salted(digest, self.salt)
        h = digest[0] << self.skip & M if self.number == 0 else self.place(c)
        for number, (shape, attempt, rows, cut, start, thresholds) in enumerate(self.levels):
            if number:
                c = fold(c ^ scramble(attempt), 0xD6E8FEB86659FD93)
                h = self.place(c)
            octets, bucket, width, values = shape
            row = high(h, rows)
            if row % bucket < values[bits_at(payload, 8 * thresholds + row // bucket * width, width)]:
                continue
            first = row // 8
            band = c | fold(c, 0x589567B845FB2C9D) << 64 if octets == 16 else c
            columns = self.r + (first >= cut)
            value = 0
            for j in range(columns):
                for k in range(octets):
                    byte = payload[start + self.at(first + k, cut) + j]
                    value ^= parity(byte & band >> 8 * k & 255) << j
            return value, (g * 0x9E6C63D0876A68ED & M) >> 32 & (1 << columns) - 1
        return None

    def value(self, payload, digest):
        found = self.word(payload, digest)
        return found[0] if found else 0

    def says(self, payload, digest):
        if not self.levels:
            return False
        found = self.word(payload, digest)
        return not found or found[0] == found[1]


class Integrated:
    def __init__(self, read, salt):
        self.parts, self.length = known(read.varint(), range(5), "variant of an integrated filter"), 0
        if not self.parts:
            return
        known(read.varint(), [0], "base of an integrated filter")
        self.share = read.varint(0, 4096)
        check(self.parts != 1 or self.share == 4096, "the share of One")
        self.table, self.rest = Fuse(read, salt), Fuse(read, child(salt, 1 << 32))
        self.w = self.table.width // 256 - (1 if self.parts in (1, 3) else 2)
        self.length = self.table.length + self.rest.length

    def says(self, payload, digest):
        if not self.parts:
            return False
        h = self.table.hash(digest)
        x = h * 0xA3B195354A39B70D & M
        weight, pick, coin = x >> 52, x >> 51 & 1, x >> 50 & 1
        use_rest, inside = False, weight < self.share
        if self.parts == 1 or self.parts == 3 and inside:
            count = 1 << self.w
        elif self.parts == 2 and inside or self.parts == 4 and not inside:
            count = 1 << self.w + pick
        elif self.parts == 4:
            count = 3 << self.w
        else:
            count, use_rest = 0, True
        mask = (1 << self.w) - 1 | count
        value, _ = self.table.word(payload[: self.table.length], digest)
        if (value ^ h >> 6 ^ h >> 32) & mask:
            return False
        return not use_rest or self.rest.value(payload[self.table.length :], digest) == coin


class Strips:
    """Hash and place of steered and local leaves."""

    def __init__(self, read, salt):
        self.skip, self.salt, self.child = read.varint(0, 25), salt, None
        if self.skip == 25:
            self.salt = child(salt, read.varint(1, (1 << 32) - 1))
            self.child = child(self.salt, 0)

    def of(self, digest):
        h = salted(digest, self.salt)
        return h, salted(digest, self.child) if self.child else digest[0] << self.skip & M


class Steered:
    def __init__(self, read, salt):
        self.strips, self.length = read.varint(0, 1 << 34), 0
        if not self.strips:
            return
        self.octets, self.share = read.varint(8, (1 << 37) // self.strips), read.varint(1, 256)
        self.places = Strips(read, salt)
        read.varint(0, 1 << 23)
        self.length = self.strips * self.octets

    def says(self, payload, digest):
        if not self.strips:
            return False
        h, place = self.places.of(digest)
        strip = place * -(-self.strips * (1 << 24) // self.share) >> 80
        if strip >= self.strips:
            return True
        row = high(h, 8 * self.octets - 56)
        band = ((fold(h, 0xA0761D6478BD642F) | 1) << row % 8) & M
        return not parity(u64(payload, strip * self.octets + row // 8) & band)


class Local:
    K = [
        0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3,
        0x1D8E4E27C47D124F, 0xEB44ACCAB455D165, 0x9C6E6877736C46E3, 0x2127599BF4325C37,
    ]  # fmt: skip

    def __init__(self, read, salt):
        self.strips, self.length = read.varint(0, 1 << 34), 0
        if not self.strips:
            return
        self.octets = read.varint(8, (1 << 37) // self.strips)
        self.steered, self.exact, self.share = read.varint(0, 6), read.varint(1, 2), read.varint(0, 256)
        self.columns = self.steered + self.exact
        check(self.columns >= 2, "one column")
        self.places = Strips(read, salt)
        read.varint(0, 1 << 24)
        self.rest = Ribbon(read, child(salt, 1 << 32))
        rows = self.strips * self.octets * self.columns
        self.thresholds = rows + {3: 2, 5: 3, 6: 2, 7: 1}.get(self.columns, 0)
        self.buckets = -(-8 * self.octets // 128)
        self.rest_at = self.thresholds + (self.strips * self.buckets * self.exact + 3) // 4
        self.length = self.rest_at + self.rest.length

    def says(self, payload, digest):
        if not self.strips:
            return False
        h, place = self.places.of(digest)
        strip, row = high(place, self.strips), high(h, 8 * self.octets - 56)
        pick, coin, weight = h % self.exact, h >> 1 & 1, h >> 2 & 255
        octet, shift = strip * self.octets + row // 8, row % 8
        group = {2: 4, 3: 2, 4: 2}.get(self.columns, 1)

        def read(column):
            found = 0
            for o in range(8):
                word = fold(h, self.K[o // group])
                mask = word >> 8 * (o % group * self.columns + column) & 255
                if o == 0:
                    mask = mask >> shift << shift | 1 << shift
                found ^= parity(mask & payload[(octet + o) * self.columns + column])
            return found

        if any(read(column) for column in range(self.steered)):
            return False
        index = (strip * self.buckets + row // 128) * self.exact + pick
        threshold = [0, 16, 40, 128][bits_at(payload, 8 * self.thresholds + 2 * index, 2)]
        if weight >= self.share or row % 128 < threshold:
            return self.rest.value(payload[self.rest_at :], digest) == coin
        return read(self.steered + pick) == coin


class Cuckoo:
    def __init__(self, read, salt):
        self.m, self.f, self.sorted = read.varint(0, 1 << 40), read.varint(4, 32), read.varint(0, 1)
        self.salt = child(salt, read.varint(0, (1 << 32) - 1))
        read.varint(), read.varint()
        self.w = 4 * self.f - 4 * self.sorted
        self.length = (self.m - 1) * self.w // 8 + (8 if self.f <= 16 else 16) if self.m else 0

    def bucket(self, payload, number):
        at, f = number * self.w, self.f
        if not self.sorted:
            return [bits_at(payload, at + i * f, f) for i in range(4)]
        code, low = bits_at(payload, at, 12), [0, 0, 0, 0]
        if code <= 3875:
            steps = [lambda a: a * (a + 1) * (a + 2) * (a + 3) // 24, lambda b: b * (b + 1) * (b + 2) // 6]
            for i, below in enumerate([*steps, lambda c: c * (c + 1) // 2, lambda d: d]):
                low[i] = max(x for x in range(16) if below(x) <= code)
                code -= below(low[i])
        return [bits_at(payload, at + 12 + i * (f - 4), f - 4) << 4 | low[i] for i in range(4)]

    def says(self, payload, digest):
        if not self.m:
            return False
        h = salted(digest, self.salt)
        x = ((h & 0xFFFFFFFF) * ((1 << self.f) - 1) >> 32) + 1
        first = high(h, self.m)
        share = x << (64 - self.f)
        r = high(share + (salted((share, x), self.salt) >> self.f), self.m)
        r |= self.m % 2 == 0
        return x in self.bucket(payload, first) or x in self.bucket(payload, (r - first) % self.m)


class Quotient:
    def __init__(self, read, salt):
        self.salt, self.m, self.r = salt, read.varint(0, 1 << 40), read.varint(1, 32)
        self.range = self.m << self.r
        check(self.range <= 1 << 62, "too many fingerprints")
        self.blocks = read.varint(-(-self.m // 64), 1 << 40 if self.m else 0)
        read.varint(0, 64 * self.blocks)
        self.number = read.varint(0, (1 << 32) - 1 if self.m else 0)
        self.size = 8 * self.r + 17
        self.length = self.blocks * self.size

    def place(self, x):
        if self.number == 0:
            return x
        k = (self.range - 1).bit_length()
        a = scramble(self.number)
        b = scramble(a)
        c, h, mask = scramble(b), (k + 1) // 2, (1 << k) - 1
        while True:
            x ^= x >> h
            x = (a | 1) * x + c & mask
            x ^= x >> h
            x = (b | 1) * x & mask
            x ^= x >> h
            if x < self.range:
                return x

    def says(self, payload, digest):
        if not self.m:
            return False
        place = self.place(high(salted(digest, self.salt), self.range))
        quotient, remainder = place >> self.r, place & (1 << self.r) - 1

        def base(block):
            return block * self.size

        def occupied(block):
            return u64(payload, base(block) + 8 * self.r)

        def offset(block):
            return payload[base(block) + self.size - 1] if block else 0

        def is_end(slot):
            return bits_at(payload, 8 * (base(slot // 64) + 8 * self.r + 8) + slot % 64, 1)

        def nth_end(slot, count):
            while slot < 64 * self.blocks:
                count -= is_end(slot)
                if count == 0:
                    return slot
                slot += 1
            return None

        b, j = divmod(quotient, 64)
        if not occupied(b) >> j & 1:
            return False
        start = 64 * b + offset(b)
        if offset(b) == 255:
            a = max((i for i in range(b) if offset(i) != 255), default=0)
            count = sum(bin(occupied(i)).count("1") for i in range(a, b))
            last = nth_end(64 * a + offset(a), count) if count else None
            start = max(64 * b, last + 1 if last is not None else 0)
        last = nth_end(start, bin(occupied(b) & (2 << j) - 1).count("1"))
        if last is None:
            return False
        slot = last
        while True:
            if bits_at(payload, 8 * base(slot // 64) + slot % 64 * self.r, self.r) == remainder:
                return True
            slot -= 1
            if slot < quotient or is_end(slot):
                return False


LEAVES = {
    1: SplitBlock, 2: Classic, 3: Fuse, 4: Ribbon, 5: Integrated, 6: Steered, 7: Local, 8: Cuckoo, 9: Quotient,
}  # fmt: skip
