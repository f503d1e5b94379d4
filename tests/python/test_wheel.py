# SPDX-License-Identifier: Apache-2.0
"""The wheel works from an empty folder: it has its library and what that needs beside it."""
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = """
import terrace
graph = {"format": "terrace-graph", "version": 1, "tensors": [{"name": "x", "bytes": 64, "kind": "input"}, {"name": "y", "bytes": 64}],
         "kernels": [{"name": "k", "operation": "f", "inputs": ["x"], "outputs": ["y"]}], "results": ["y"]}
print(terrace.plan(graph, machine="numa-sentinel").verified, terrace.__path__[0])
"""


class Wheel(unittest.TestCase):
    def test_it_is_complete(self):
        made = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "wheel")], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(os.path.join(ROOT, made.stdout.strip())) as wheel:
                wheel.extractall(folder)
                names = wheel.namelist()
            listed = [name for name in names if name.endswith("RECORD")]
            self.assertEqual(len(listed), 1)
            environment = {name: value for name, value in os.environ.items() if not name.startswith("TERRACE_")}
            run = subprocess.run([sys.executable, "-c", CODE], cwd=folder, env={**environment, "PYTHONPATH": folder},
                                 capture_output=True, text=True)
            self.assertEqual(run.stdout.strip(), f"True {os.path.join(folder, 'terrace')}", run.stderr)
            maps = "import terrace; print(open('/proc/self/maps').read())"
            run = subprocess.run([sys.executable, "-c", maps], cwd=folder, env={**environment, "PYTHONPATH": folder},
                                 capture_output=True, text=True)
            self.assertIn(os.path.join(folder, "terrace", "libterrace-c.so.0"), run.stdout)


if __name__ == "__main__":
    unittest.main()
