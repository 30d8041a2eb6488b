"""How Sphinx builds the site: `make docs`. Nothing is downloaded, and nothing that git tracks is written."""

import os
import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from rankwise_lab.explore.page import write_page

from rankwise.kernels import compiled

project = "rankwise"
author = "The rankwise authors"
project_copyright = author
release = version = metadata.version("rankwise")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["gallery/README.rst", "gallery/*.ipynb"]  # what the gallery makes to be downloaded
default_role = "py:obj"
nitpicky = False

# Markdown is read by the code host, too: headings get the same anchors, and nothing but CommonMark and tables is used.
myst_heading_anchors = 4

# The notebooks are kept without outputs and run by every build; an error in one of them is an error of the build.
NOTEBOOKS = Path(__file__).parent / "notebooks"
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"  # on a new machine, the notice that kernels compile
# Figures of notebooks go to the page; the gallery sets a backend of its own.
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"

autosummary_generate = True
autodoc_typehints = "none"  # signatures stay short; types are said under Parameters
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
}
suppress_warnings = ["config.cache"]  # the order of gallery scripts is a class, which Sphinx cannot pickle

html_theme = "pydata_sphinx_theme"
html_title = "rankwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "rankwise"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "navigation_depth": 3,
    "show_nav_level": 1,
    "secondary_sidebar_items": {"**": ["page-toc"], "explore": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"changelog": [], "explore": [], "faq": [], "getting_started": []}

# Pages of the gallery show what a script prints. On a new machine, that would include a notice that kernels compile.
compiled._Announcement.said = True

# Docstrings are mathematics in plain text: R*, |a ∩ b|, coef_ and ndcg@10 are no markup of reStructuredText.
MARKUP = re.compile(r"(`+[^`]+`+)|([*|@]|(?<=\w)_(?!\w))")
FIELD = re.compile(r"\w[\w, *]* : ")  # the first line of a parameter, which is numpydoc's
UNDERLINE = re.compile(r"-{4,}$")


def _docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make reStructuredText of a docstring: escape what would be markup, keep indented formulas as they are written."""
    if what == "data" and obj.__doc__ == type(obj).__doc__:
        lines[:] = []  # a constant: what its type says of itself is no help
        return
    section, found = "", [""]
    for at, line in enumerate(lines):
        if UNDERLINE.match(line):
            section = lines[at - 1]
        formula = not section and line.startswith("    ")
        if formula and not found[-1]:
            found += ["::", ""]
        if section != "Examples" and not formula and not FIELD.match(line):
            line = MARKUP.sub(lambda part: part[1] or "\\" + part[2], line)
        found.append(line)
    lines[:] = found[1:]


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn writes into every estimator."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def _copy_notebooks(app: Any, config: Any) -> None:
    """Copy the notebooks beside the documents, where Sphinx looks for pages."""
    shutil.rmtree(NOTEBOOKS, ignore_errors=True)
    shutil.copytree(
        NOTEBOOKS.parents[1] / "examples" / "notebooks", NOTEBOOKS, ignore=lambda *_: {".ipynb_checkpoints"}
    )


def _write_explorer(app: Any, error: Exception | None) -> None:
    """Write the interactive page, the one that `rankwise explore` opens, beside the page that shows it."""
    if error is None and app.builder.format == "html":
        write_page(Path(app.outdir) / "explorer")


def setup(app: Any) -> dict[str, bool]:
    """Connect these functions."""
    app.connect("config-inited", _copy_notebooks)
    app.connect("autodoc-process-docstring", _docstring, priority=400)
    app.connect("autodoc-skip-member", _skip)
    app.connect("build-finished", _write_explorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
