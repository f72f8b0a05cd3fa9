"""a corpus in Parquet, ids to remove -> the corpus without them, batch by batch.

All ids of the corpus are known, so the filter excludes those that stay: no document is lost.

    python remove_documents.py
"""

import tempfile
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet

import tamis


def remove(corpus: Path, listed: pyarrow.Array, kept: Path) -> tuple[int, tamis.Filter]:
    """Writes all documents but the listed ones. Returns how many were removed."""
    ids = pyarrow.parquet.read_table(corpus, columns=["id"])["id"]
    others = ids.filter(pyarrow.compute.invert(pyarrow.compute.is_in(ids, listed)))
    filter = tamis.build(listed, exclude=others, exact=True)
    removed = 0
    source = pyarrow.parquet.ParquetFile(corpus)
    with pyarrow.parquet.ParquetWriter(kept, source.schema_arrow) as out:
        for batch in source.iter_batches():
            hit = filter.contains_many(batch.column("id"))
            removed += hit.true_count
            out.write_batch(batch.filter(pyarrow.compute.invert(hit)))
    return removed, filter


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ids = [f"doc-{number:07}" for number in range(100_000)]
        table = pyarrow.table({"id": ids, "text": [f"text of {id}" for id in ids]})
        pyarrow.parquet.write_table(table, folder / "corpus.parquet", row_group_size=10_000)
        listed = pyarrow.array(ids[::250])
        removed, filter = remove(folder / "corpus.parquet", listed, folder / "kept.parquet")
        kept = pyarrow.parquet.read_table(folder / "kept.parquet")["id"]
        assert removed == len(listed) and kept.to_pylist() == [id for id in ids if int(id[4:]) % 250]
        print(f"removed     {removed:,} of {len(ids):,}")
        print(f"filter      {filter.nbytes:,} bytes, {8 * filter.nbytes / len(filter):.2f} bits per listed id")


if __name__ == "__main__":
    main()
