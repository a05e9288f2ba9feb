"""Arguments of Ray's that this package does not have."""

import warnings

from cadre import _core

_named: set[tuple] = set()


def no_meaning(where, **arguments):
    """Warns, once, of arguments that were given and have no meaning here."""
    for name, value in arguments.items():
        if value is not None and (where, name) not in _named:
            _named.add((where, name))
            warnings.warn(f"{where}: {name} has no meaning here", stacklevel=4)


def refuse(where, **arguments):
    """Raises InvalidArgument that names the arguments that were given: without them the rows would be others."""
    given = [name for name, value in arguments.items() if value is not None and value is not False]
    if given:
        raise _core.InvalidArgument(f"{where}: {', '.join(given)} cannot be used here")


def refuse_options(where, options, known):
    """Raises InvalidArgument that names the options of an object of pyarrow's that are not its default. The `known` ones
    may be anything."""
    default = type(options)()
    names = [name for name in dir(default) if not name.startswith("_") and not callable(getattr(default, name))]
    refuse(where, **{f"{type(options).__name__}.{name}": True for name in names
                     if name not in known and getattr(options, name) != getattr(default, name)})
