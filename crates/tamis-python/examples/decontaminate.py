"""evaluation sets, boilerplate, documents in Parquet -> the documents that repeat an evaluation set, and which.

An n-gram is eight words in a row. Those of the evaluation sets become a filter and a map to their set; those of boilerplate
(licences, headers) are excluded, for they prove nothing. The key of an n-gram is a number, and never a Python object.

    python decontaminate.py [DOCUMENTS [EVALUATIONS]]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

import tamis

WORDS = 8


class Decontaminator:
    """The n-grams of named evaluation sets."""

    def __init__(self, evaluations: dict[str, list[str]], boilerplate: list[str]) -> None:
        found = {name: tamis.ngrams(texts, WORDS, lower=True)[0] for name, texts in evaluations.items()}
        keys = numpy.concatenate(list(found.values()))
        names = numpy.repeat(list(found), [len(keys) for keys in found.values()])
        # An n-gram of two sets counts for the first.
        keys, first = numpy.unique(keys, return_index=True)
        excluded, _ = tamis.ngrams(boilerplate, WORDS, lower=True)
        # The filter rejects nearly all, quickly; the map recognises the rest.
        self.filter = tamis.build(keys, exclude=excluded, on_conflict="drop", fpr=1e-4, kind="chained-fuse")
        self.sources = tamis.map(keys, names[first], fpr=2**-24)

    def hits(self, texts: pyarrow.Array) -> dict[int, dict[str, int]]:
        """For each row with hits: how many n-grams are of which evaluation set."""
        keys, offsets = tamis.ngrams(texts, WORDS, lower=True)
        hit = numpy.flatnonzero(self.filter.contains_many(keys))
        rows = numpy.searchsorted(offsets, hit, side="right") - 1
        found: dict[int, dict[str, int]] = {}
        for row, name in zip(rows.tolist(), self.sources.get_many(keys[hit]).to_pylist()):
            if name is not None:
                of_row = found.setdefault(row, {})
                of_row[name] = of_row.get(name, 0) + 1
        return found


def with_a_bloom_filter(
    evaluations: dict[str, list[str]], boilerplate: list[str], texts: list[str]
) -> tuple[set[int], int, float]:
    """What it replaces: a loop over n-grams and a Bloom filter. Returns rows with hits, n-grams and seconds of the processor."""
    from rbloom import Bloom

    def grams(text: str) -> list[str]:
        words = text.lower().split()
        return [" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)]

    listed = {gram for texts in evaluations.values() for text in texts for gram in grams(text)}
    listed -= {gram for text in boilerplate for gram in grams(text)}
    bloom = Bloom(max(len(listed), 1), 1e-9)
    bloom.update(listed)
    start, count, rows = time.process_time(), 0, set()
    for row, text in enumerate(texts):
        for gram in grams(text):
            count += 1
            if gram in bloom:
                rows.add(row)
    return rows, count, time.process_time() - start


def generated(documents: int, evaluations: int) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Texts of random words; one document in 50 repeats a part of an evaluation set."""
    random = numpy.random.default_rng(7)
    vocabulary = numpy.array([f"word{number}" for number in range(20_000)])

    def text(words: int) -> list[str]:
        return vocabulary[random.zipf(1.3, words).clip(max=20_000) - 1].tolist()

    licence = " ".join(text(200))
    sets = {name: [" ".join(text(60)) for _ in range(evaluations)] for name in ("algebra", "history", "code")}
    sets["code"] = [f"{licence} {question}" for question in sets["code"]]
    texts = []
    for number in range(documents):
        words = text(300)
        if number % 50 == 0:
            questions = sets[["algebra", "history", "code"][number // 50 % 3]]
            words[100:100] = questions[number % evaluations].split()
        elif number % 10 == 0:
            words[:0] = licence.split()
        texts.append(" ".join(words))
    return sets, [licence], texts


def main() -> None:
    documents, evaluations = (int(argument) for argument in [*sys.argv[1:], "2000", "300"][:2])
    sets, boilerplate, texts = generated(documents, evaluations)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), path, row_group_size=500)
        decontaminator = Decontaminator(sets, boilerplate)
        found, first, seconds = {}, 0, 0.0
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(columns=["text"]):
            # The loop gets texts that were read before, too.
            start = time.process_time()
            hits = decontaminator.hits(batch.column(0))
            seconds += time.process_time() - start
            found |= {first + row: sources for row, sources in hits.items()}
            first += batch.num_rows
    rows, grams, loop = with_a_bloom_filter(sets, boilerplate, texts)
    assert {row for row in range(0, documents, 50)} <= set(found) and set(found) == rows
    assert all(
        max(found[row], key=found[row].get) == ["algebra", "history", "code"][row // 50 % 3]
        for row in range(0, documents, 50)
    )
    print(f"documents   {documents:,}, {len(found):,} with hits; row 0: {found[0]}")
    print(f"filter      {decontaminator.filter}")
    print(f"per n-gram  {1e9 * seconds / grams:.0f} ns; a loop over a Bloom filter: {1e9 * loop / grams:.0f} ns")


if __name__ == "__main__":
    main()
