"""tools/check_layers.py finds forbidden includes."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(os.environ["CADRE_SOURCE"]) / "tools" / "check_layers.py"


def faults(path, line):
    """Returns the output of the tool for a checkout with one file of one line."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / path
        file.parent.mkdir(parents=True)
        file.write_text(line + "\n")
        run = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
    return run.stderr if run.returncode else ""


class CheckLayersTest(unittest.TestCase):
    def test_refuses_an_include_of_a_layer_above(self):
        self.assertIn("base may include only", faults("src/base/a.cc", '#include "store/b.h"'))
        self.assertIn("worker may include only", faults("src/worker/a.cc", '#include "cadre/tune/tuner.h"'))
        self.assertIn("not tune", faults("src/train/a.cc", '#include "tune/trial.h"'))
        self.assertIn("not train", faults("src/tune/a.cc", '#include "cadre/train.h"'))

    def test_refuses_a_library_outside_its_folder(self):
        self.assertIn("torch may be included only", faults("src/tune/a.cc", "#include <torch/torch.h>"))
        self.assertIn("torch may be included only", faults("src/worker/a.cc", '#include "cadre/torch.h"'))
        self.assertIn("Cap'n Proto may be", faults("src/worker/a.cc", "#include <kj/async.h>"))
        self.assertIn("Cap'n Proto may be", faults("src/engine/local/a.cc", '#include "channel/protocol.capnp.h"'))
        self.assertIn("Arrow may be", faults("src/store/a.cc", "#include <arrow/api.h>"))

    def test_refuses_a_private_header_in_a_public_one(self):
        self.assertIn("public header", faults("include/cadre/a.h", '#include "base/file.h"'))

    def test_accepts_what_is_drawn(self):
        self.assertEqual("", faults("src/worker/a.cc", '#include "channel/frame.h"'))
        self.assertEqual("", faults("src/torch/a.cc", "#include <torch/torch.h>"))
        self.assertEqual("", faults("src/tune/a.cc", '#include "cadre/tune/tuner.h"'))
        self.assertEqual("", faults("examples/x/a.cc", '#include "cadre/torch.h"'))


if __name__ == "__main__":
    unittest.main()
