"""The version of this build, as the package's metadata says it too."""

__all__ = ["__version__"]

__version__ = "0.1.0"
