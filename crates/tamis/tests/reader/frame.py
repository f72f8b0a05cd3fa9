"""a file -> its head, the contents of its directory and its payloads, all sums checked: sections 2 and 4 of docs/format.md."""

from hashes import Hash
from xxh3 import u64, xxh3_64, xxh3_128

BLOCK = 65536


class Wrong(Exception):
    """A file that no writer makes."""


class Unsupported(Exception):
    """A number that this reader does not know."""


def check(holds, what):
    if not holds:
        raise Wrong(what)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        check(self.at + count <= len(self.data), "bytes are missing")
        self.at += count
        return self.data[self.at - count : self.at]

    def u8(self):
        return self.take(1)[0]

    def u64(self):
        return u64(self.take(8), 0)

    def varint(self, low=0, most=(1 << 64) - 1):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            check(byte or not shift, "a varint that is not the shortest")
            value |= (byte & 127) << shift
            if byte < 128:
                check(low <= value <= most, f"{value} is not in {low} to {most}")
                return value
        raise Wrong("a varint of more than ten bytes")

    def left(self):
        return len(self.data) - self.at

    def end(self):
        check(self.left() == 0, "bytes are left")


def known(number, numbers, what):
    if number not in numbers:
        raise Unsupported(f"{what} {number}")
    return number


class File:
    def __init__(self, data, secret=None):
        check(data[:8] == b"\x89tamis\r\n" and len(data) >= 48, "no tamis file")
        known(int.from_bytes(data[8:10], "little"), [1], "version")
        footer = data[-32:]
        check(footer[28:] == b"sieV", "cut short")
        length = int.from_bytes(footer[:4], "little")
        start = len(data) - 32 - length
        check(start >= 16, "a directory longer than the file")
        self.identity = footer[12:28]
        hi, lo = xxh3_128(data[start:-20])
        check(self.identity == lo.to_bytes(8, "little") + hi.to_bytes(8, "little"), "the identity does not match")
        check(footer[4:12] == data[8:16], "front and footer differ")
        known(int.from_bytes(data[10:12], "little"), [0], "must-know flags")
        self.may_change = data[12] & 1 == 1
        self.sections, last = {}, 0
        directory = Reader(data[start:-32])
        while directory.left():
            number = directory.varint(last + 1)
            last = number
            if number % 2:
                known(number, [1, 3, 7], "section")
            self.sections[number] = directory.take(directory.varint())
        check(1 in self.sections and 3 in self.sections, "no head or no contents")
        self.metadata = self.sections.get(6, b"")
        self.data, self.end, self.payload_end = data, 16, start
        self.head(Reader(self.sections[1]), secret)
        check(7 not in self.sections or self.form == 10, "a scorer in another form")
        check(7 in self.sections or self.form != 10, "no scorer in a learned filter")
        self.contents = Reader(self.sections[3])
        self.units = []
        self.check_sums(Reader(self.sections[2]))

    def head(self, head, secret):
        self.form = known(head.u8(), [*range(9), 10], "form")
        number = known(head.u8(), [5] if self.form == 6 else range(5), "hash")
        self.key_type = known(head.u8(), range(4), "key type")
        self.bits = head.u8()
        check(self.bits <= 24 and (self.bits == 0 or self.form in (0, 2, 3, 6, 7, 8)), "shards")
        if number == 0:
            words = (head.varint(),)
        elif number == 1:
            words = (head.u64(), head.u64())
        elif number == 2:
            words = (head.varint(), head.u64())
        elif number == 3:
            words = (head.varint(), head.varint())
            check(self.key_type == 2, "a hash of the caller's for other keys than digests")
        elif number == 5:
            words = (0, head.varint())
        else:
            value, words = head.u64(), secret
            check(secret, "the secret is not in the file")
            check(Hash(4, secret).bytes(b"the secret of a tamis file")[0] == value, "wrong secret")
        self.hash = Hash(number, words)
        self.keys, self.negatives = head.varint(), head.varint()
        head.end()

    def check_sums(self, sums):
        end = 16
        while sums.left():
            code = sums.varint()
            length, start = code >> 1, (end + 63) // 64 * 64 if code & 1 else end
            check(length > 0 and start + length <= self.payload_end, "a unit outside the payload")
            check(not any(self.data[end:start]), "a gap that is not zero")
            self.units.append((start, length))
            end = start + length
            for at in range(start, end, BLOCK):
                check(xxh3_64(self.data[at : min(at + BLOCK, end)]) == sums.u64(), f"the sum of bytes {at} and on")
        check(end == self.payload_end, "bytes without a sum")

    def unit(self, lengths, several=False):
        """The payloads of the next unit, which has parts of these lengths."""
        places, length = [], 0
        for part in lengths:
            start = length if part < BLOCK else (length + 63) // 64 * 64
            places.append(start)
            length = start + part
        start = self.end
        if length and (several or length >= BLOCK):
            start = (start + 63) // 64 * 64
        if length:
            check(self.units and self.units.pop(0) == (start, length), "the sums are those of other units")
        check(start + length <= self.payload_end, "the payload is too short")
        self.end = start + length
        return [self.data[start + at : start + at + part] for at, part in zip(places, lengths)]

    def finish(self):
        self.contents.end()
        if self.units and not self.sections.keys() <= {1, 2, 3, 6, 7}:
            self.end, self.units = sum(self.units[-1]), []  # of a section that is skipped
        check(self.end == self.payload_end and not self.units, "payload that nothing describes")
