#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes real SIFT descriptors from the pictures of Debian's packages of wallpapers.

    bench/data/sift.py VECTORS.u8bin QUERIES.u8bin [COUNT [QUERY_COUNT]]

The packages: scripts/install-packages pictures. Queries are of pictures that gave no vectors. The same pictures
make the same files; descriptors that equal an earlier one are dropped, and the order is shuffled by a seed.
"""
import pathlib
import sys

import cv2
import numpy

FOLDERS = ["/usr/share/wallpapers", "/usr/share/backgrounds", "/usr/share/lxqt/wallpapers"]
ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
LONGEST_SIDE = 2560  # larger pictures add time, not variety
QUERY_PICTURES = 10  # one in so many


def pictures():
    """The largest file of each picture: packages hold the same one in several sizes."""
    best = {}
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix.lower() in ENDINGS and path.is_file() and path.stat().st_size > 100_000:
                key = path.parent.parent if path.parent.name.startswith("images") else path
                if key not in best or path.stat().st_size > best[key].stat().st_size:
                    best[key] = path
    return sorted(set(path.resolve() for path in best.values()))


def descriptors(path, sift):
    picture = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if picture is None:
        return numpy.zeros((0, 128), numpy.uint8)
    scale = LONGEST_SIDE / max(picture.shape)
    if scale < 1:
        picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    found = sift.detectAndCompute(picture, None)[1]
    return numpy.zeros((0, 128), numpy.uint8) if found is None else found.astype(numpy.uint8)


def write(path, rows):
    with open(path, "wb") as out:
        numpy.array(rows.shape, numpy.uint32).tofile(out)
        rows.tofile(out)


def gather(paths, wanted, seed, enough):
    """`wanted` descriptors, of as many pictures as it takes to find `enough`."""
    cv2.setRNGSeed(0)
    sift = cv2.SIFT_create(contrastThreshold=0.01)
    parts, count = [], 0
    for path in paths:
        if count >= enough:
            break
        parts.append(descriptors(path, sift))
        count += len(parts[-1])
        print(f"\r{count} descriptors", end="", file=sys.stderr)
    print(file=sys.stderr)
    rows = numpy.unique(numpy.concatenate(parts), axis=0)
    numpy.random.default_rng(seed).shuffle(rows)
    if len(rows) < wanted:
        print(f"there are {len(rows)} where {wanted} were wanted: install more pictures", file=sys.stderr)
    return rows[:wanted]


def main():
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    queries = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
    paths = pictures()
    if not paths:
        sys.exit("sift.py: there are no pictures: run scripts/install-packages pictures")
    numpy.random.default_rng(1).shuffle(paths)
    write(sys.argv[1], gather([p for i, p in enumerate(paths) if i % QUERY_PICTURES], wanted, 1, wanted * 1.05))
    # One picture has thousands of descriptors, which are alike: queries come from all that are left.
    write(sys.argv[2], gather(paths[::QUERY_PICTURES], queries, 2, float("inf")))


if __name__ == "__main__":
    main()
