"""contents of a learned filter -> answers: section 23 of docs/format.md."""

from filters import Filter
from frame import File, Reader, check, known
from xxh3 import M


class Grams:
    """Scorer 1: weights of hashed runs of two and three bytes."""

    def __init__(self, weights):
        self.bits = len(weights).bit_length() - 1
        check(6 <= self.bits <= 20 and len(weights) == 1 << self.bits, "the number of weights")
        self.weights = weights

    def weight(self, run):
        number = int.from_bytes(run, "little") | (1 << 24 if len(run) == 3 else 0)
        weight = self.weights[(number * 0x9FB21C651E98DF25 & M) >> (64 - self.bits)]
        return weight - 256 if weight > 127 else weight

    def score(self, key):
        text = b"\2" + key[:256] + b"\3"
        places = range(len(text) - 2)
        return sum(self.weight(text[at : at + 2]) + self.weight(text[at : at + 3]) for at in places)


class Learned:
    def __init__(self, file, secret=None):
        self.file, read = file, file.contents
        check(file.bits == 0 and file.key_type == 0, "the head of a learned filter")
        scorer = Reader(file.sections[7])
        known(scorer.varint(), [1], "scorer")
        length = scorer.varint()
        scorer.end()
        (weights,) = file.unit([length])
        self.scorer = Grams(weights)
        self.thresholds = []
        for number in range(read.varint(0, 254)):
            code = read.varint(0 if number == 0 else 1, (1 << 32) - 1)
            first = -(code + 1) // 2 if code & 1 else code // 2
            self.thresholds.append(self.thresholds[-1] + code if number else first)
        check(all(-(1 << 31) <= at < 1 << 31 for at in self.thresholds), "thresholds of more than 32 bits")
        self.front = self.filter(read.varint(), secret)
        self.classes = [self.filter(read.varint(), secret) for _ in range(len(self.thresholds) + 1)]
        file.finish()

    def filter(self, length, secret):
        if length == 0:
            return None
        (data,) = self.file.unit([length])
        inside = File(data, secret)
        check(inside.form == 0 and inside.key_type == 0, "a class has another filter than of bytes")
        return Filter(inside)

    def get(self, key):
        place = sum(threshold <= self.scorer.score(key) for threshold in self.thresholds)
        return all(filter is None or filter.get(key) for filter in (self.front, self.classes[place]))
