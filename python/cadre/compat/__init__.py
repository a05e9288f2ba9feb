"""Programs that are written for other packages."""
