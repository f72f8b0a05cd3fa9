"""a manifest and the slices in its folder -> answers: section 24 of docs/format.md."""

from filters import answer, lay_out, read_layers
from frame import File, check, known


class Slice:
    """Some of the shards of a filter."""

    def __init__(self, data, number, manifest):
        self.file = file = File(data)
        known(file.form, [7], "form")
        read, s = file.contents, manifest.s
        check((read.varint(0, 12), read.varint(0, (1 << s) - 1)) == (s, number), "another slice")
        check(file.bits == manifest.file.bits and s <= file.bits, "slices of another number of shards")
        read.u64(), read.varint(), read.take(read.varint()).decode()
        self.layers = read_layers(read, file.bits - s)
        lay_out(file, self.layers, file.bits - s, file.bits > 0)
        file.finish()


class Sliced:
    """The slices of a folder as one filter."""

    def __init__(self, file, folder):
        self.file, read = file, file.contents
        self.s = read.varint(0, 12)
        named = [(read.take(16), read.varint()) for _ in range(1 << self.s)]
        read.take(read.varint()).decode()
        file.finish()
        for number, (identity, length) in enumerate(named):
            data = (folder / f"slice-{number:05}.tamis").read_bytes()
            one = Slice(data, number, self)
            check(len(data) == length and one.file.identity == identity, "not the slice of the manifest")
            if number == 0:
                self.layers = one.layers
                continue
            kinds, more = ([(layer["role"], layer["tag"]) for layer in layers] for layers in (self.layers, one.layers))
            check(kinds == more, "slices of other layers")
            for layer, more in zip(self.layers, one.layers):
                layer["shards"] += more["shards"]
                layer["payloads"] += more["payloads"]

    def get(self, key):
        return answer(self.layers, self.file.bits, self.file.hash.of(key))
