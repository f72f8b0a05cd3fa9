"""a patch, or a file and its patches -> answers: section 22 of docs/format.md."""

from filters import Filter, Partitioned, answer, fingerprint, lay_out, read_layers
from frame import File, check, known
from hashes import child, salt, salted


class Patch:
    """Digests whose answers it flips."""

    def __init__(self, data):
        self.file = file = File(data)
        known(file.form, [6], "form")
        read = file.contents
        kind = known(read.u8(), [0, 1], "kind of patch")
        self.number, self.base = read.varint(1, 128), read.take(16)
        self.before = self.base if self.number == 1 else read.take(16)
        partitions = read.varint()
        self.members, self.delisted, self.more = read.varint(), read.varint(), read.varint()
        self.listed = None
        if kind == 0:
            self.read_list(read)
        else:
            self.layers = read_layers(read, file.bits)
            lay_out(file, self.layers, file.bits)
        (names,) = file.unit([8 * partitions])
        self.partitions = [int.from_bytes(names[at : at + 8], "little") for at in range(0, len(names), 8)]
        check(all(a < b for a, b in zip(self.partitions, self.partitions[1:])), "partitions that do not ascend")
        file.finish()

    def read_list(self, read):
        check(self.file.keys <= 128 and self.file.bits == 0, "a list of more than 128 keys")
        self.salt = child(salt((1 << 32) + 1), read.varint(0, (1 << 32) - 1))
        self.bits, low = read.varint(1, 64), read.varint(0, 63)
        (data,) = self.file.unit([read.varint()])
        bits = [byte >> i & 1 for byte in data for i in range(8)]
        self.listed, at, last = set(), 0, -1
        for _ in range(self.file.keys):
            gap = 0
            while at < len(bits) and bits[at]:
                gap, at = gap + 1, at + 1
            check(at + 1 + low <= len(bits), "a list that ends early")
            gap = gap << low | sum(bits[at + 1 + i] << i for i in range(low))
            at += 1 + low
            last += 1 + gap
            check(last >> self.bits == 0, "a hash of too many bits")
            self.listed.add(last)
        check(not any(bits[at:]) and len(bits) - at < 8, "bits after the list")

    def flips(self, digest):
        digest = self.file.hash.mixed(digest)
        if self.listed is not None:
            return salted(digest, self.salt) >> 64 - self.bits in self.listed
        return answer(self.layers, self.file.bits, digest)


class Patched:
    """A base and its patches."""

    def __init__(self, base, patches=()):
        self.base, self.file, self.patches = base, base.file, []
        for patch in patches:
            self.push(patch)

    def push(self, patch):
        last = self.patches[-1].file if self.patches else self.file
        check(patch.base == self.file.identity and patch.before == last.identity, "a patch of another file")
        check(patch.number == len(self.patches) + 1, "a patch of another number")
        check(patch.file.key_type == self.file.key_type, "a patch for keys of another type")
        self.patches.append(patch)

    def get(self, *key):
        if len(key) == 2:
            new = fingerprint(self.file.hash.bytes(key[0]), 0, 8)
            if self.base.group(key[0]) is None and not any(new in patch.partitions for patch in self.patches):
                return False
        digest = self.base.digest(*key)
        return self.base.get(*key) ^ (sum(patch.flips(digest) for patch in self.patches) % 2 == 1)


def open_chain(file, secret):
    """A file of form 6 that a filter can be opened from."""
    known(file.contents.u8(), [2], "kind of file of patches")
    lengths = [file.contents.varint() for _ in range(1 + file.contents.varint(1, 128))]
    parts = [file.unit([length])[0] for length in lengths]
    file.finish()
    base = File(parts[0], secret)
    known(base.form, [0, 1], "form of a base")
    return Patched((Filter, Partitioned)[base.form](base), map(Patch, parts[1:]))
