"""a block list that never blocks a popular site -> rows of a pandas frame that are blocked.

python block_list.py [DENY ALLOW]
"""

import sys
from pathlib import Path

import pandas

import tamis

QUICKSTART = Path(__file__).resolve().parents[3] / "data" / "quickstart"


def main() -> None:
    deny, allow = sys.argv[1:] or (QUICKSTART / "deny.txt", QUICKSTART / "allow.txt")
    deny, allow = (pandas.Series(Path(path).read_text().splitlines()) for path in (deny, allow))
    filter = tamis.build(deny, exclude=allow, fpr=0.001)
    visits = pandas.DataFrame({"host": [deny[0], allow[0], None, deny.iloc[-1], "intranet.example"], "ms": range(5)})
    visits["blocked"] = filter.contains_many(visits["host"])
    assert visits["blocked"].tolist()[:4] == [True, False, False, True]
    assert filter.contains_many(deny).all() and not filter.contains_many(allow).any()
    print(visits)
    print(filter)


if __name__ == "__main__":
    main()
