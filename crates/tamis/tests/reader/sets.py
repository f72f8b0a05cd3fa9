"""contents of an index of many sets -> the sets that hold a key: section 16 of docs/format.md."""

from filters import Filter
from frame import File, Reader, check, known
from hashes import child, high, salt, salted, scramble
from leaves import SplitBlock, bits_at
from maps import Map
from xxh3 import M


class Bits:
    """Bits from the low end of bytes on."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        self.at += count
        return bits_at(self.data, self.at - count, count)

    def gamma(self):
        zeros = 0
        while not self.take(1):
            zeros += 1
        return 1 << zeros | self.take(zeros)

    def numbers(self, count, low, high):
        if count == 0:
            return []
        half = count // 2
        first, last = low + half, high - (count - 1 - half)
        choices = last - first + 1
        b = choices.bit_length() - 1
        short = (2 << b) - choices
        x = self.take(b)
        if x >= short:
            x = 2 * x + self.take(1) - short
        middle = first + x
        return self.numbers(half, low, middle - 1) + [middle] + self.numbers(count - 1 - half, middle + 1, high)

    def list(self, below):
        return self.numbers(self.gamma() - 1, 0, below - 1)


class Lists:
    def __init__(self, read):
        self.count, self.bits, self.width = read.varint(), read.varint(), read.varint(0, 46)
        self.header = self.bits.bit_length() + self.width + 5
        self.blocks = -(-self.count // 16)
        self.start = (self.blocks * self.header + 7) // 8
        self.length = self.start + (self.bits + 7) // 8

    def get(self, payload, number, below):
        head = Bits(payload, number // 16 * self.header)
        start, shortest, w = head.take(self.bits.bit_length()), head.take(self.width), head.take(5)
        inside = min(16, self.count - number // 16 * 16)
        at = 8 * self.start + start
        longer = [bits_at(payload, at + i * w, w) for i in range(inside)]
        at += inside * w + sum(shortest + more for more in longer[: number % 16])
        return Bits(payload, at).list(below)


class Side:
    def __init__(self, read):
        self.keys = read.varint(0, 1 << 40)
        self.lists = Lists(read) if self.keys else None
        check(not self.keys or self.lists.count == self.keys, "keys and lists of a side table")

    def lay_out(self, file):
        if self.keys:
            (keys,) = file.unit([12 * self.keys])
            self.places = {}
            for at in range(0, len(keys), 12):
                key = int.from_bytes(keys[at : at + 8], "little"), int.from_bytes(keys[at + 8 : at + 12], "little")
                self.places[key] = at // 12
            (self.payload,) = file.unit([self.lists.length])

    def get(self, key, below):
        if not self.keys or (key[0], key[1] >> 32) not in self.places:
            return None
        return self.lists.get(self.payload, self.places[key[0], key[1] >> 32], below)


class Frozen:
    def __init__(self, read, sets, file):
        self.sets, filter_len, map_len = sets, read.varint(), read.varint()
        self.lists = Lists(read)
        self.filter = Filter(File(file.unit([filter_len])[0])) if filter_len else None
        self.map = Map(File(file.unit([map_len])[0]))
        (self.payload,) = file.unit([self.lists.length])

    def get(self, key):
        if self.filter and not self.filter.by_digest(key):
            return []
        number = self.map.by_digest(key)
        return [] if number is None or number >= self.lists.count else self.lists.get(self.payload, number, self.sets)


class Sketch:
    """A Bloom or a cuckoo table, with the filter before it and the side tables."""

    def __init__(self, read, sets, file, is_cuckoo):
        self.sets, self.is_cuckoo = sets, is_cuckoo
        self.filter = SplitBlock(read, salt(0x5E75)) if read.varint(0, 1) else None
        self.heavy, self.extra = Side(read), Side(read)
        self.size, self.f = read.varint(1, 1 << 40), read.varint(4, 32) if is_cuckoo else read.varint(1, 32)
        self.repetitions = read.varint(1, 8)
        self.partitions = read.varint(0 if self.repetitions == 1 else 1, 0 if self.repetitions == 1 else 1 << 20)
        counting = read.varint(0, 3 if is_cuckoo else 1)
        self.counting, self.number = counting & 1, read.varint(1, (1 << 32) - 1) if counting & 2 else 0
        if is_cuckoo:
            self.table = (-(-4 * self.size * self.f // 64) + 1) * 8
            length = self.repetitions * (self.table + 4 * self.size * self.counting)
        else:
            self.table = self.size * (64 if self.counting else 8)
            length = self.repetitions * self.table
        self.front = file.unit([self.filter.length])[0] if self.filter else b""
        self.heavy.lay_out(file)
        self.extra.lay_out(file)
        (self.payload,) = file.unit([length])

    def offset(self, set_, t):
        return set_ if self.repetitions == 1 else (scramble((t << 32) + set_) >> 32) * self.partitions >> 32

    def bloom(self, key, t):
        """Whether the table of repetition t has an offset."""
        s = child(salt(0x637363626C6F6F), t)
        a, d, anchors = salted(key, child(s, 0)), salted(key, child(s, 1)), []
        for _ in range(self.f):
            anchors.append(high(a, 64 * self.size))
            a, d = a + d & M, d * 0xD1342543DE82EF95 & M
        cell = 8 if self.counting else 1

        def has(o):
            for anchor in anchors:
                word, place = divmod(anchor, 64)
                index = 64 * ((word + o // 64) % self.size) + (o + place) % 64
                if not bits_at(self.payload, 8 * t * self.table + index * cell, cell):
                    return False
            return True

        return has

    def cuckoo(self, key, t):
        s = child(salt(0x6373636375636B), t)
        h = salted(key, child(s, self.number) if self.number else s)
        fingerprint = ((h & 0xFFFFFFFF) * ((1 << self.f - 1) - 1) >> 32) + 1
        mirror = high(scramble(fingerprint), self.size) | (self.size % 2 == 0)

        def slots(bucket):
            at = 8 * t * self.table + 4 * bucket * self.f
            return [bits_at(self.payload, at + i * self.f, self.f) for i in range(4)]

        def has(o):
            first = (high(h, self.size) + o) % self.size
            second = (mirror - first) % self.size
            return 2 * fingerprint in slots(first) or 2 * fingerprint + 1 in slots(second)

        return has

    def get(self, key):
        if self.filter and not self.filter.says(self.front, key):
            return []
        found = self.heavy.get(key, self.sets)
        if found is not None:
            return found
        tables = [(self.cuckoo if self.is_cuckoo else self.bloom)(key, t) for t in range(self.repetitions)]
        held = {s for s in range(self.sets) if all(has(self.offset(s, t)) for t, has in enumerate(tables))}
        return sorted(held | set(self.extra.get(key, self.sets) or []))


class Sets:
    def __init__(self, file):
        read, self.file, self.segments = file.contents, file, []
        read.varint(0, 31)
        count, length = read.varint(0, 1 << 24), read.varint()
        names = Reader(file.unit([length])[0])
        self.names = []
        for _ in range(count):
            name = names.take(names.varint(1, 4096)).decode()
            self.names.append((name, names.varint(0, 1) == 1))
            names.varint()
        names.end()
        for _ in range(read.varint(0, 4096)):
            kind = known(read.u8(), range(3), "kind of segment")
            read.varint(), read.varint(), read.varint()
            local = read.varint()
            if known(read.u8(), range(2), "list of a segment's sets"):
                numbers = [read.varint(0, count) - 1 for _ in range(local)]
            else:
                numbers = list(range(local))
            body = Frozen(read, local, file) if kind == 0 else Sketch(read, local, file, kind == 2)
            self.segments.append((numbers, body))
        file.finish()

    def get(self, key):
        hi, lo = self.file.hash.of(key)
        key = hi ^ lo * 0xD6E8FEB86659FD93 & M, lo >> 32 << 32
        found = {numbers[s] for numbers, body in self.segments for s in body.get(key)}
        return sorted(s for s in found if s >= 0 and not self.names[s][1])
