"""Sphinx configuration: Markdown pages, mathematics, and the public interface from docstrings."""

import pluriverse

project = "Pluriverse"
author = "The Pluriverse developers"
copyright = author
version = release = pluriverse.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Pluriverse"
