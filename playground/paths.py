"""Where the files that come with Playground lie: models, presets, trained policies."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def asset_folder(name: str) -> Path:
    """Returns the folder `name` ("xmls", "configs" or "policies").

    An installed wheel carries these folders inside the package; a checkout has them
    beside it.
    """
    installed = _PACKAGE / "assets" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
