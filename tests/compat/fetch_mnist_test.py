"""tools/fetch_mnist.py reads numpy arrays and nothing else, and the files that it wrote are MNIST."""

import hashlib
import io
import os
import pathlib
import pickle
import sys
import tempfile
import unittest

import numpy

SOURCE = pathlib.Path(os.environ["CADRE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tools"))

import fetch_mnist  # noqa: E402

# Checksums of the original files.
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


class RunsCommand:
    """Pickles to a call of os.system."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


class UnpicklerTest(unittest.TestCase):
    def test_pickle_that_runs_a_command_is_refused_and_not_run(self):
        with tempfile.TemporaryDirectory() as folder:
            witness = pathlib.Path(folder) / "ran"
            evil = pickle.dumps((numpy.zeros(3), RunsCommand(f"touch {witness}")), protocol=3)
            with self.assertRaisesRegex(pickle.UnpicklingError, "system is not allowed"):
                fetch_mnist.read_arrays(io.BytesIO(evil))
            self.assertFalse(witness.exists())
            pickle.loads(evil)  # the pickle would have run it
            self.assertTrue(witness.exists())

    def test_every_other_name_is_refused(self):
        for module, name in [("builtins", "eval"), ("builtins", "getattr"), ("numpy", "load"), ("numpy", "memmap"),
                             ("numpy.core.multiarray", "scalar"), ("os", "system")]:
            with self.assertRaisesRegex(pickle.UnpicklingError, "not allowed"):
                fetch_mnist.read_arrays(io.BytesIO(f"c{module}\n{name}\n.".encode()))

    def test_reads_arrays_of_both_numpy_generations(self):
        arrays = (numpy.arange(6, dtype="f4").reshape(2, 3), numpy.arange(2))
        new = pickle.dumps(arrays, protocol=3)
        old = new.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        self.assertNotEqual(new, old)
        for pickled in (new, old):
            images, labels = fetch_mnist.read_arrays(io.BytesIO(pickled))
            numpy.testing.assert_array_equal(images, arrays[0])
            numpy.testing.assert_array_equal(labels, arrays[1])


class DatasetTest(unittest.TestCase):
    def test_wrong_counts_are_refused_and_named(self):
        pair = (numpy.zeros((20, 784), "f4"), numpy.arange(20) % 10)
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(fetch_mnist.DataError, "expected 60000"):
                fetch_mnist.write_dataset(pathlib.Path(folder), [pair, pair, pair])

    def test_pixels_out_of_range_are_refused(self):
        with self.assertRaisesRegex(fetch_mnist.DataError, "expected 0 to 255"):
            fetch_mnist.to_uint8(numpy.full((1, 784), 1.5))

    def test_fetched_files_are_the_originals(self):
        for name, md5 in MD5.items():
            data = (SOURCE / "data" / "mnist" / name).read_bytes()
            self.assertEqual(md5, hashlib.md5(data).hexdigest(), name)


if __name__ == "__main__":
    unittest.main()
