#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Learns word vectors from the texts of Debian's dictionaries, for searches by cosine.

    bench/data/words.py VECTORS.fbin QUERIES.fbin [QUERY_COUNT]

The packages: scripts/install-packages words. Vectors have 100 dimensions and the length one, so that the nearest by
l2 are the nearest by cosine. One thread of fasttext with its fixed seed makes the same files from the same texts;
queries are words that are not among the vectors, chosen by a seed.
"""
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

TEXTS = ["/usr/share/dictd/gcide.dict.dz", "/usr/share/dictd/wn.dict.dz"]
DIMENSION = 100


def write_corpus(path):
    word = re.compile(r"[a-z]+")
    with open(path, "w", encoding="ascii") as out:
        for text in TEXTS:
            with gzip.open(text, "rt", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    out.write(" ".join(word.findall(line.lower())) + "\n")


def learn(corpus, output):
    subprocess.run(
        ["fasttext", "skipgram", "-input", corpus, "-output", output, "-dim", str(DIMENSION), "-minCount", "3",
         "-minn", "0", "-maxn", "0", "-epoch", "1", "-lr", "0.1", "-thread", "1"], check=True, stdout=subprocess.DEVNULL)
    with open(output + ".vec", encoding="utf-8") as lines:
        count = int(lines.readline().split()[0])
        rows = numpy.zeros((count, DIMENSION), numpy.float32)
        for i, line in enumerate(lines):
            rows[i] = numpy.array(line.split()[1:], numpy.float32)
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return numpy.unique((rows / lengths)[lengths[:, 0] > 0], axis=0)


def write(path, rows):
    with open(path, "wb") as out:
        numpy.array(rows.shape, numpy.uint32).tofile(out)
        rows.tofile(out)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    absent = [text for text in TEXTS if not pathlib.Path(text).exists()]
    if absent:
        sys.exit(f"words.py: there is no {absent[0]}: run scripts/install-packages words")
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(folder + "/corpus")
        rows = learn(folder + "/corpus", folder + "/words")
    numpy.random.default_rng(1).shuffle(rows)
    queries = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    write(sys.argv[1], rows[queries:])
    write(sys.argv[2], rows[:queries])
    print(f"{len(rows) - queries} words", file=sys.stderr)


if __name__ == "__main__":
    main()
