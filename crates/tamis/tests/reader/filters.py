"""contents of a filter, plain or partitioned -> answers: sections 4 and 5 of docs/format.md."""

from frame import check, known
from hashes import child, salt, salted, scramble
from leaves import LEAVES
from xxh3 import M


def read_layers(read, bits, first=0):
    """A list of layers; their salts have numbers from `first` on. Payloads come later."""
    kinds = []
    word = read.varint(0, (1 << 39) - 1)
    count, first = word & 127, first + 64 * (word >> 7)
    check(count <= 64, f"{count} layers")
    for _ in range(count):
        role = known(read.u8(), range(3), "role")
        kinds.append((role, known(read.u8(), LEAVES, "leaf")))
    layers = []
    for number, (role, tag) in enumerate(kinds):
        shards = [LEAVES[tag](read, salt(first + number)) for _ in range(1 << bits)]
        layers.append({"role": role, "tag": tag, "shards": shards, "payloads": []})
    return layers


def lay_out(file, layers, bits, several=None):
    several = bits > 0 if several is None else several
    for shard in range(1 << bits):
        lengths = [layer["shards"][shard].length for layer in layers]
        for layer, payload in zip(layers, file.unit(lengths, several)):
            layer["payloads"].append(payload)


def part(layer, bits, digest):
    shard = digest[0] >> 64 - bits if bits else 0
    return layer["shards"][shard], layer["payloads"][shard]


def answer(layers, bits, digest):
    for layer in layers:
        leaf, payload = part(layer, bits, digest)
        says = leaf.says(payload, digest)
        if layer["role"] == 2:
            return says
        if not says:
            return layer["role"] == 1
    return True


class Filter:
    def __init__(self, file):
        self.file = file
        self.layers = read_layers(file.contents, file.bits)
        lay_out(file, self.layers, file.bits)
        file.finish()

    def by_digest(self, digest):
        return answer(self.layers, self.file.bits, digest)

    def digest(self, key):
        return self.file.hash.of(key)

    def get(self, key):
        return self.by_digest(self.digest(key))


def fingerprint(name, number, width):
    """That of a partition whose name has this digest."""
    return salted(name, child(salt(1 << 32), number)) >> 64 - 8 * width


class Partitioned:
    def __init__(self, file):
        read, self.file, self.groups = file.contents, file, []
        read.u64()
        for _ in range(read.varint(0, 255)):
            bits = read.varint(0, 24)
            read.varint(), read.varint()
            layers = read_layers(read, bits)
            lay_out(file, layers, bits)
            self.groups.append((layers, bits))
        count, self.number = read.varint(0, (1 << 32) - 1), read.varint(0, (1 << 32) - 1)
        self.width = min(8, -(-(32 + (max(count, 1) - 1).bit_length()) // 8))
        size = self.width + 1
        (entries,) = file.unit([count * size])
        self.table, last = {}, -1
        for at in range(0, len(entries), size):
            found = int.from_bytes(entries[at : at + self.width], "little")
            check(found > last and entries[at + self.width] <= len(self.groups), "the table of partitions")
            self.table[found], last = entries[at + self.width], found
        file.finish()

    def digest(self, partition, key):
        name, digest = self.file.hash.bytes(partition), self.file.hash.plain(key)
        return self.file.hash.mixed((digest[0] ^ scramble(name[0]), digest[1] + scramble(name[1]) & M))

    def group(self, partition):
        """The number of a partition's group; 0 for one without keys, None for one that is not listed."""
        return self.table.get(fingerprint(self.file.hash.bytes(partition), self.number, self.width))

    def get(self, partition, key):
        group = self.group(partition)
        if not group:
            return False
        layers, bits = self.groups[group - 1]
        return answer(layers, bits, self.digest(partition, key))
