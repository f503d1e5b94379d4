# SPDX-License-Identifier: Apache-2.0
"""terrace.ann: numpy arrays in, labels and distances out."""
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    sys.exit(77)

import terrace
from terrace import ann


def rows(count, seed, dimension=16):
    draw = numpy.random.default_rng(seed)
    centres = numpy.random.default_rng(0).normal(size=(8, dimension))
    return (centres[draw.integers(0, 8, count)] + 0.5 * draw.normal(size=(count, dimension))).astype(numpy.float32)


def exact(vectors, queries, k):
    distances = ((queries[:, None, :].astype(float) - vectors[None].astype(float)) ** 2).sum(2)
    order = distances.argsort(1)[:, :k]
    return order, numpy.take_along_axis(distances, order, 1)


class Search(unittest.TestCase):
    def setUp(self):
        self.vectors, self.queries = rows(2000, 1), rows(50, 2)
        self.truth, self.distances = exact(self.vectors, self.queries, 10)
        self.index = ann.Index(space="l2", dim=16)
        self.index.init_index(max_elements=2000, M=8, ef_construction=60)

    def recall(self, labels):
        return numpy.mean([len(set(a) & set(b)) / 10 for a, b in zip(labels.tolist(), self.truth.tolist())])

    def test_finds_what_brute_force_finds_in_several_additions(self):
        self.index.add_items(self.vectors[:1200])
        self.index.add_items(self.vectors[1200:])
        self.index.set_ef(100)
        labels, distances = self.index.knn_query(self.queries, k=10)
        self.assertEqual(labels.shape, (50, 10))
        self.assertGreaterEqual(self.recall(labels), 0.97)
        self.assertTrue((numpy.diff(distances, axis=1) >= 0).all())
        numpy.testing.assert_allclose(distances[:, 0], self.distances[:, 0], rtol=1e-4)

    def test_labels_are_the_users_and_survive_saving(self):
        names = numpy.arange(2000, dtype=numpy.uint64) * 3 + (1 << 40)
        self.index.add_items(self.vectors, ids=names)
        self.index.set_ef(100)
        before = self.index.knn_query(self.queries, k=10)
        self.assertTrue(numpy.isin(before[0], names).all())
        with tempfile.TemporaryDirectory() as folder:
            self.index.save_index(folder)
            for placement in ("memory", "disk"):
                other = ann.Index()
                other.load_index(folder, placement=placement)
                other.set_ef(100)
                after = other.knn_query(self.queries, k=10)
                numpy.testing.assert_array_equal(after[0], before[0])
                self.assertEqual(other.get_current_count(), 2000)
        self.index.mark_deleted(int(before[0][0, 0]))
        self.assertNotEqual(self.index.knn_query(self.queries, k=1)[0][0, 0], before[0][0, 0])

    def test_distances_are_those_of_hnswlib(self):
        for space, expected in (("ip", 1 - 2 * 3), ("cosine", 0), ("l2", 1)):
            index = ann.Index(space=space, dim=2)
            index.init_index()
            index.add_items([[2, 0], [0, 9]])
            distance = index.knn_query([[3, 0]], k=1)[1][0, 0]
            self.assertAlmostEqual(float(distance), expected, places=5, msg=space)

    def test_fewer_than_k_are_filled_up(self):
        self.index.add_items(self.vectors[:3])
        labels, distances = self.index.knn_query(self.queries[:1], k=5)
        self.assertEqual(sorted(labels[0, :3].tolist()), [0, 1, 2])
        self.assertTrue(numpy.isinf(distances[0, 3:]).all())
        self.assertTrue((labels[0, 3:] == 0xFFFFFFFFFFFFFFFF).all())

    def test_tuning_keeps_its_promise(self):
        self.index.add_items(self.vectors)
        learnt = rows(100, 3)
        chosen = self.index.tune(self.vectors, learnt, recall=0.9, latency=60)
        self.assertGreaterEqual(chosen["recall"], 0.9)
        self.assertGreaterEqual(self.recall(self.index.knn_query(self.queries, k=10)[0]), 0.88)

    def test_a_file_larger_than_its_memory_is_built(self):
        with tempfile.TemporaryDirectory() as folder:
            numpy.save(f"{folder}/data.npy", self.vectors)
            told = []
            ann.build_file(f"{folder}/data.npy", f"{folder}/index", 9 << 20, progress=told.append, links=8,
                           ef_construction=60, fast_bytes=200_000, code_bytes=4)
            self.assertTrue(told)
            index = ann.Index()
            index.load_index(f"{folder}/index", placement="disk")
            index.set_search(ef1=20, ef0=60, beam=4)
            self.assertGreaterEqual(self.recall(index.knn_query(self.queries, k=10)[0]), 0.95)
            self.assertGreater(index.describe()["reads"], 0)

    def test_refuses_with_a_sentence(self):
        with self.assertRaisesRegex(ValueError, "is empty"):
            self.index.knn_query(self.queries)
        self.index.add_items(self.vectors[:10])
        with self.assertRaisesRegex(ValueError, "rows have 3 dimensions"):
            self.index.knn_query([[1, 2, 3]])
        with self.assertRaisesRegex(ValueError, "id is there already"):
            self.index.add_items(self.vectors[:1], ids=[4])
        with self.assertRaises(terrace.InvalidRequest):
            self.index.add_items(numpy.full((1, 16), numpy.nan))
        with self.assertRaisesRegex(terrace.InvalidRequest, "holds no index"):
            ann.Index().load_index("/nowhere")
        with self.assertRaisesRegex(terrace.InvalidRequest, "no metric 'l3'"):
            ann.Index(space="l3", dim=2).add_items([[1, 2]])


if __name__ == "__main__":
    unittest.main()
