"""docs/format.md as a program: opens the golden files, checks sums and identities, and answers the questions that are written down.

    python3 reader.py PAGE QUESTIONS..

A second reader, written from the page alone and without the library. Standard library only. It prints what differs and exits 1.
PAGE is docs/format.md, for its test vectors; QUESTIONS are the texts of tests/questions, whose files lie in the folder above.
"""

import sys
from ipaddress import ip_address
from pathlib import Path

from filters import Filter, Partitioned
from frame import File, Unsupported, Wrong
from hashes import Hash, of_hash
from learned import Learned
from maps import Map
from patches import Patch, Patched, open_chain
from sets import Sets
from slices import Sliced
from xxh3 import xxh3_64

FORMS = {0: Filter, 1: Partitioned, 2: Map, 3: Map, 4: Sets}


def open_file(data, secret=None, folder=None):
    file = File(data, secret)
    if file.form == 8 and folder:
        return Sliced(file, folder)
    if file.form == 6:
        return open_chain(file, secret)
    if file.form == 10:
        return Learned(file, secret)
    if file.form not in FORMS:
        raise Unsupported(f"form {file.form}")
    return FORMS[file.form](file)


def parse(token):
    kind, text = token.split(":", 1)
    if kind == "int":
        return int(text)
    if kind == "x":
        return b"x" * int(text)
    if kind == "hex":
        return bytes.fromhex(text)
    if kind == "ip":
        return ip_address(text).packed
    if kind == "u128":
        return int(text).to_bytes(16, "big")
    if kind == "digest":
        return "digest", int(text[:16], 16), int(text[16:], 16)
    return tuple(parse(part) for part in text.split("+"))


def written(answer, form):
    if form in (0, 1, 8, 10):
        return "yes" if answer else "no"
    if form == 4:
        return "sets:" + ",".join(map(str, answer))
    if answer is None:
        return "none"
    return f"hex:{answer.hex()}" if isinstance(answer, bytes) else f"int:{answer}"


def vectors(page):
    """Checks the test vectors of the page; returns how many there are."""
    count = 0
    for line in page.splitlines():
        words = line.split()
        if line.startswith("  hash ") and len(words) > 4:
            number, *stored = (int(word, 16) for word in words[1:-3])
            digest = Hash(number, tuple(stored)).of(parse(words[-3]))
            assert [f"{word:016x}" for word in digest] == words[-2:], line
            count += 1
        if line.startswith("  xxh3-64 "):
            assert f"{xxh3_64(parse(words[1])):016x}" == words[2], line
            count += 1
        if line.startswith(("  64 bits  ", "  128 bits  ")):
            hi, lo = of_hash(int(words[2], 16), int(words[0]))
            assert f"{hi:016x}{lo:016x}" == words[3], line
            count += 1
    assert count > 25, f"{count} test vectors"
    return count


def damage(data, secret):
    """Whether every changed byte of a small file is found."""
    for at in range(len(data)):
        try:
            open_file(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], secret)
            return False
        except (Wrong, Unsupported):
            pass
    return True


def main(page, *texts):
    count, files, questions, wrong = vectors(Path(page).read_text()), 0, 0, 0
    for text in map(Path, texts):
        opened = None
        for line in text.read_text().splitlines():
            words = line.split(" ")
            if words[0] == "file":
                path = text.parent.parent / words[1]
                data = path.read_bytes()
                secret = tuple(int(word, 16) for word in words[2:]) or None
                name, opened, files = words[1], open_file(data, secret, path.parent), files + 1
                if len(data) < 200 and not damage(data, secret):
                    print(f"{name}: a changed byte is not found")
                    wrong += 1
                continue
            if words[0] == "patch":
                opened = opened if isinstance(opened, Patched) else Patched(opened)
                opened.push(Patch((text.parent.parent / words[1]).read_bytes()))
                files += 1
                continue
            key = [bytes.fromhex(words[0][3:]), parse(words[1])] if words[0][:3] == "in:" else [parse(words[0])]
            found = written(opened.get(*key), opened.file.form)
            questions += 1
            if found != words[-1]:
                print(f"{name}: {line}; found {found}")
                wrong += 1
    print(f"{count} test vectors, {files} files, {questions} questions, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
