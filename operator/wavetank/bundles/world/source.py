"""What a Python check must be like, found out by reading it: nothing is executed here."""

import ast
import warnings

from wavetank.bundles.world.place import Place

FUNCTION = "verify"
"""What a Python check defines."""

_FORM = f"def {FUNCTION}(world, trajectory)"


def check_source(text: str, place: Place) -> None:
    """Report Python that is none, or that does not define ``verify(world, trajectory)``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the author's style, for instance "\d"
            module = ast.parse(text)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        place.fault(f"this is not Python: {line}{error.msg}.")
    except (ValueError, RecursionError, MemoryError):
        place.fault("this is not Python, or nested too deeply to be read.")
    else:
        _check_function(module, place)


def _check_function(module: ast.Module, place: Place) -> None:
    named = [each for each in module.body if getattr(each, "name", None) == FUNCTION]
    if not named or not isinstance(named[-1], ast.FunctionDef):
        place.fault(f"there is no function '{FUNCTION}'. Write {_FORM}, and no async one.")
    elif not _takes_two(named[-1].args):
        place.fault(f"'{FUNCTION}' does not take two arguments. Write {_FORM}.")


def _takes_two(given: ast.arguments) -> bool:
    places = len(given.posonlyargs) + len(given.args)
    needed = places - len(given.defaults)
    keywords_needed = any(default is None for default in given.kw_defaults)
    return needed <= 2 <= (2 if given.vararg else places) and not keywords_needed
