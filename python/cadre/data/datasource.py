"""Columns from the names of the folders in which files are."""

import enum

from cadre.data._arguments import refuse


class PartitionStyle(str, enum.Enum):
    """How the names of folders are meant: HIVE, year=2024, or DIRECTORY, 2024."""

    HIVE = "hive"
    DIRECTORY = "dir"


class Partitioning:
    """Folders as columns of texts. style: "hive" or "dir". field_names: for "dir", a column for each folder below the path
    that is read, from the outermost on. base_dir: that path, or nothing."""

    def __init__(self, style, base_dir=None, field_names=None, field_types=None, filesystem=None):
        refuse("Partitioning", field_types=field_types or None, filesystem=filesystem)
        self.style = PartitionStyle(style)
        self.base_dir = base_dir
        self.field_names = field_names
