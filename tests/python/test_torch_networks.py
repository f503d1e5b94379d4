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
SHORT = ["squeezenet1_1", *torch_networks.OURS]


class SameBits(unittest.TestCase):
    def check(self, row):
        if row["unordered"] and torch.get_num_threads() > 1:
            return  # PyTorch itself gives other bits from run to run
        self.assertEqual(row["same"], [True, True, True])

    def test_a_few_networks_are_captured(self):
        for name in SHORT:
            with self.subTest(name):
                row = torch_networks.row_of(name, planner="prefetch")
                self.assertEqual(row["way"], "capture", row["why"])
                self.check(row)

    @unittest.skipUnless(LONG, "takes minutes: TERRACE_LONG=1")
    def test_all_networks(self):
        for name in [*torch_networks.TORCHVISION, *torch_networks.OURS]:
            with self.subTest(name):
                row = torch_networks.whole_row(name)
                self.assertNotIn("failed", row)
                self.check(row)


if __name__ == "__main__":
    unittest.main()
