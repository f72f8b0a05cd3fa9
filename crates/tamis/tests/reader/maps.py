"""contents of a map or a sequence -> values: section 15 of docs/format.md."""

from filters import answer, lay_out, part, read_layers
from frame import Reader, check, known
from hashes import salt, salted
from xxh3 import M


class Coder:
    """The arithmetic decoder of the table of values."""

    def __init__(self, data):
        self.data, self.at = data, 0
        self.low, self.high, self.window = 0, 0xFFFFFFFF, 0
        for _ in range(4):
            self.shift()

    def shift(self):
        byte = self.data[self.at] if self.at < len(self.data) else 0
        self.window = (self.window << 8 | byte) & 0xFFFFFFFF
        self.at += 1

    def decide(self, chances, at):
        p = chances.get(at, 2048)
        middle = self.low + ((self.high - self.low) * p >> 12)
        yes = self.window <= middle
        if yes:
            self.high, p = middle, p + (max(4064 - p, 0) >> 5)
        else:
            self.low, p = middle + 1, p - (max(p - 32, 0) >> 5)
        chances[at] = p
        while self.low >> 24 == self.high >> 24:
            self.low, self.high = self.low << 8 & 0xFFFFFFFF, self.high << 8 & 0xFFFFFFFF | 255
            self.shift()
        return yes

    def number(self, chances):
        if self.decide(chances, "zero"):
            return 0
        node = 1
        for _ in range(6):
            node = 2 * node + self.decide(chances, node)
        value = 1
        for _ in range(node - 64):
            value = 2 * value + self.decide({}, 0)
        return value

    def end(self):
        check(self.at == len(self.data) + 3 or not self.data, "the coded values do not end where they should")


class Values:
    def __init__(self, read):
        self.kind = known(read.u8(), range(3), "kind of values")
        if self.kind == 0:
            self.least = read.varint()
            return read.end()
        sizes = [read.varint(1, 4194304) for _ in range(read.varint())]
        coder = Coder(read.take(read.varint()))
        order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
        ends = [sum(sizes[:i]) for i in range(len(sizes))]
        self.values, chances, number, last = [None] * sum(sizes), {}, {}, None
        spans, following = [], 0
        for _ in self.values:
            found = order[-1]
            for kind in order[:-1]:
                if coder.decide(chances, (kind, kind == last)):
                    found = kind
                    break
            last, symbol = found, ends[found]
            ends[found] += 1
            distance = coder.number(number)
            if self.kind == 1:
                self.values[symbol] = following + distance
                following = self.values[symbol] + 1
            else:
                spans.append((symbol, distance))
        if self.values:
            coder.end()
        for symbol, length in spans:
            self.values[symbol] = bytes(read.take(length))
        read.end()

    def get(self, symbol):
        if self.kind == 0:
            return symbol + self.least & M
        return self.values[symbol] if symbol < len(self.values) else None


class Map:
    def __init__(self, file):
        read, self.file, bits = file.contents, file, file.bits
        read.varint()
        self.front = read_layers(read, bits)
        check(len(self.front) <= 1 and all(layer["role"] == 0 for layer in self.front), "the front of a map")
        self.root, self.nodes, everything = read.varint(), [], list(self.front)
        for _ in range(read.varint(0, 4096)):
            kind = known(read.u8(), range(3), "kind of node")
            if kind == 0:
                node = {"to": [read.varint(), read.varint()]}
            else:
                node = {"bits": read.varint(1, 64 if kind == 1 else 8), "mark": read.varint(0, 32)}
                node["to"] = read.varint() if kind == 1 else [read.varint() for _ in range(1 << node["bits"])]
            node["kind"], node["layers"] = kind, read_layers(read, bits, len(everything))
            everything += node["layers"]
            self.nodes.append(node)
        length = read.varint()
        lay_out(file, everything, bits)
        self.values = Values(Reader(file.unit([length])[0]))
        file.finish()

    def symbol(self, digest):
        bits, target = self.file.bits, self.root
        if self.file.keys == 0 or not answer(self.front, bits, digest):
            return None
        while target % 2:
            node = self.nodes[target // 2]
            if node["kind"] == 0:
                target = node["to"][0 if answer(node["layers"], bits, digest) else 1]
                continue
            value = 0
            for number, layer in enumerate(node["layers"]):
                leaf, payload = part(layer, bits, digest)
                value |= leaf.value(payload, digest) << 32 * number
            mark = value >> node["bits"] & (1 << node["mark"]) - 1
            value &= (1 << node["bits"]) - 1
            if mark != salted(digest, salt(1 << 33)) & (1 << node["mark"]) - 1:
                return None
            if node["kind"] == 1:
                return node["to"] + value & M
            target = node["to"][value]
        return target // 2

    def by_digest(self, digest):
        symbol = self.symbol(digest)
        return None if symbol is None else self.values.get(symbol)

    def get(self, key):
        if self.file.form == 3 and not 0 <= key < self.file.keys:
            return None
        return self.by_digest(self.file.hash.of(key))
