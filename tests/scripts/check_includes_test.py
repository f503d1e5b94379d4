# SPDX-License-Identifier: Apache-2.0
"""scripts/check-includes fails on an include against the order that src/README.md draws, and names it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for part in ["src", "include"]:
            shutil.copytree(ROOT / part, self.root / part)

    def faults(self):
        """What it says of the copy; empty where it accepts it."""
        run = subprocess.run([sys.executable, ROOT / "scripts/check-includes", self.root], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1 if run.stderr else 0)
        return run.stderr.splitlines()

    def plant(self, path, include):
        source = self.root / path
        source.write_text(f'#include "{include}"\n' + source.read_text())

    def test_accepts_the_tree(self):
        self.assertEqual(self.faults(), [])

    def test_refuses_an_include_against_the_order(self):
        self.plant("src/plan/verify.cpp", "planners/table.hpp")
        self.assertEqual(self.faults(), ["check-includes: src/plan/verify.cpp: includes planners/table.hpp, but plan stands "
                                         "before planners in the order"])

    def test_refuses_a_public_header_of_a_later_folder(self):
        self.plant("include/terrace/graph.hpp", "terrace/net.hpp")
        self.assertEqual(self.faults(), ["check-includes: include/terrace/graph.hpp: includes terrace/net.hpp, but graph stands "
                                         "before nn in the order"])

    def test_refuses_a_folder_that_is_nowhere_in_the_order(self):
        (self.root / "src/utilities").mkdir()
        self.assertEqual(self.faults(), ["check-includes: src/README.md: folder utilities is not in its order"])


if __name__ == "__main__":
    unittest.main()
