"""Arrow's libraries, which are those of the installed pyarrow."""

import ctypes
import glob
import os

from cadre import _core


def load():
    """Loads what the extension cadre._data is linked with. Raises ImportError for another pyarrow, or none."""
    needed = _core.arrow_version
    if not needed:
        raise ImportError("cadre.data: this build of cadre has no datasets; it was built without pyarrow")
    how = 'pip install "cadre-tune[data]"'
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"cadre.data needs pyarrow {needed}, which is not installed: {how}") from error
    if pyarrow.__version__ != needed:
        raise ImportError(f"cadre.data needs pyarrow {needed}, and this is pyarrow {pyarrow.__version__}, whose binary "
                          f"interface is another one: {how}")
    folder = os.path.dirname(pyarrow.__file__)
    for library in ("arrow", "arrow_compute", "parquet", "arrow_acero", "arrow_dataset"):
        ctypes.CDLL(glob.glob(os.path.join(folder, f"lib{library}.so.*"))[0])
