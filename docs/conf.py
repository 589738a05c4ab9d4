"""Sphinx configuration: Markdown pages, mathematics, and the public interface from docstrings."""

import sys
from pathlib import Path

import pluriverse

sys.path.insert(0, str(Path(__file__).parent))

project = "Pluriverse"
author = "The Pluriverse developers"
copyright = author
version = release = pluriverse.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
extensions += ["array_table"]  # beside this file
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Pluriverse"
