"""Importers: robots and scenes from asset files into a builder."""

from pluriverse.importers.errors import (
    AssetError,
    AssetFileError,
    AssetWarning,
    UnsupportedAssetError,
)
from pluriverse.importers.report import ImportEntry, ImportReport, ImportSeverity, Keyframe

__all__ = [
    "AssetError",
    "AssetFileError",
    "AssetWarning",
    "ImportEntry",
    "ImportReport",
    "ImportSeverity",
    "Keyframe",
    "UnsupportedAssetError",
]
