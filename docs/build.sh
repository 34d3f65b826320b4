#!/bin/sh
# docs/build.sh - builds the web site in build-docs/html from README.md, NEWS.md, docs/*.md and the reference
# of all functions, and checks its links. Sphinx is installed with pip in build-docs/venv.
#
#     sh docs/build.sh [FOLDER]     FOLDER is used in place of build-docs
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$top/build-docs}
python=$folder/venv/bin/python

if ! "$python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv" ||
        { echo 'docs/build.sh: python3 cannot make a virtual environment. Debian: apt-get install python3-venv' >&2 && exit 1; }
fi
"$python" -m pip install --quiet --disable-pip-version-check -r "$top/docs/requirements.txt" ||
    { echo "docs/build.sh: pip could not install what docs/requirements.txt lists" >&2 && exit 1; }

"$python" "$top/docs/stage.py" "$top" "$folder/source"
"$python" -B "$top/tools/reference/reference.py" pages "$folder/source/docs/reference"
rm -rf "$folder/html" # Sphinx must not reuse it: it fails if a function has moved to another page
"$python" -m sphinx -b html -q -W --keep-going "$folder/source" "$folder/html"
"$python" "$top/docs/check_links.py" "$folder/html"
echo "The first page is $folder/html/index.html"
