# SPDX-License-Identifier: Apache-2.0
"""Networks of torchvision and of the reference models, fitted: losses, gradients and weights of eager to the bit.

A few of them by default; with TERRACE_LONG=1 all, as torch_networks.py writes them into docs/results/torch_networks.md.
"""
import os
import sys
import unittest

try:
    import torch
    import torchvision  # noqa: F401
except ImportError:
    sys.exit(77)

import torch_networks

LONG = os.environ.get("TERRACE_LONG") == "1"


def check(test, row):
    if row["unordered"] and torch.get_num_threads() > 1:
        return  # PyTorch itself gives other bits from run to run
    test.assertEqual(row["same"], [True, True, True])


def check_captured(test, names):
    for name in names:
        with test.subTest(name):
            row = torch_networks.row_of(name, planner="prefetch")
            test.assertEqual(row["way"], "capture", row["why"])
            check(test, row)


class Torchvision(unittest.TestCase):
    def test_a_network_is_captured_with_the_same_bits(self):
        check_captured(self, ["squeezenet1_1"])

    @unittest.skipUnless(LONG, "takes minutes: TERRACE_LONG=1")
    def test_all_networks(self):
        for name in [*torch_networks.TORCHVISION, *torch_networks.OURS]:
            with self.subTest(name):
                row = torch_networks.whole_row(name)
                self.assertNotIn("failed", row)
                check(self, row)


class ReferenceModels(unittest.TestCase):
    def test_each_is_captured_with_the_same_bits(self):
        check_captured(self, torch_networks.OURS)


if __name__ == "__main__":
    unittest.main()
