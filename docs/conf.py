# The settings of Sphinx for the web site. docs/build.sh runs it on a copy of the documents.
import re
from pathlib import Path

header = Path('@TOP@/include/duet/duet.h').read_text()
project = 'Duet'
release = version = re.search('DUET_VERSION  *"(.*)"', header)[1]
extensions = ['myst_parser']
myst_enable_extensions = ['fieldlist']
myst_heading_anchors = 4
html_theme = 'furo'
html_title = f'Duet {release}'
html_copy_source = False
html_show_copyright = False
highlight_language = 'c'
c_id_attributes = ['DUET_API', 'DUET_MUST']
