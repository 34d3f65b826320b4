"""reference.py KIND OUTPUT [DEPFILE] - writes the reference of all functions of Duet.
    header   OUTPUT is the file duet/reference.h; hover.h is written beside it
    man      OUTPUT is the folder for the manual pages; it is made anew
    pages    OUTPUT is the folder for pages in Markdown, one for each subject
DEPFILE, for ninja, gets the names of all files that are read."""
import re
import sys
from pathlib import Path

from functions import read_functions
from macros import read_macros
from write_header import write_hover, write_reference
from write_man import write_man
from write_pages import write_pages

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
INCLUDE = TOP / 'include' / 'duet'


def main(kind, output, depfile=None):
    functions, output = read_functions(TOP), Path(output)
    if kind == 'header':
        write_reference(output, functions)
        write_hover(output.parent / 'hover.h', functions, list(read_macros(INCLUDE)))
    elif kind == 'man':
        version = re.search('DUET_VERSION  *"(.*)"', (INCLUDE / 'duet.h').read_text())[1]
        write_man(output, functions, version)
    else:
        write_pages(output, functions)
    if depfile:
        read = [*INCLUDE.iterdir(), *HERE.glob('*.py'), TOP / 'docs' / 'operators.md']
        Path(depfile).write_text(f'{output}: {" ".join(str(p).replace(" ", chr(92) + " ") for p in read)}\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
