"""Importers: robots and scenes from asset files into a builder."""

from pluriverse.importers.errors import (
    AssetError,
    AssetFileError,
    AssetLimitError,
    UnsupportedAssetError,
)
from pluriverse.importers.report import ImportEntry, ImportReport, ImportSeverity, Keyframe
from pluriverse.warnings import AssetWarning

__all__ = [
    "AssetError",
    "AssetFileError",
    "AssetLimitError",
    "AssetWarning",
    "ImportEntry",
    "ImportReport",
    "ImportSeverity",
    "Keyframe",
    "UnsupportedAssetError",
]
