"""Reads the comments of the headers. A comment has sentences; items, one for each function; and tags:

    /* Create a view.
     *     duet_row     m[i]; the first axis is removed
     *     duet_column  m[:, j] of a rank-2 matrix
     * Threads may read a matrix and its views at the same time.
     * Owner     the caller, until duet_free */
"""
import re
from collections import namedtuple

Comment = namedtuple('Comment', 'paragraphs items tags')
TAGS = 'Shapes', 'Threads', 'Failures', 'Owner', 'Errors', 'Source', 'Units'
ITEM = re.compile(r'    (\w+)(?:  +|\n +)(\S.*)', re.S)
TAG = re.compile(rf'({"|".join(TAGS)})  +(.*)', re.S)


def lines_of(comment):
    for line in comment.strip('/*\n ').split('\n'):
        yield re.sub(r'^ ?\* ?', '', line).rstrip()


def blocks(comment):
    """Groups lines to items and tags, whose other lines are indented deeper, code, and plain text."""
    block = []
    for line in lines_of(comment):
        if block and (is_listed(line) or not continues(block[0], line)):
            yield '\n'.join(block)
            block = []
        block.append(line)
    yield '\n'.join(block)


def is_listed(line):
    return ITEM.match(line) or TAG.match(line)


def indent(line):
    return len(line) - len(line.lstrip())


def continues(first, line):
    if is_listed(first):
        return indent(line) > indent(first)
    return (indent(first) >= 4) == (indent(line) >= 4)


def words(text):
    return ' '.join(text.split())


def read_comment(comment):
    """Paragraphs are text, or code where they are indented."""
    result = Comment([], {}, {})
    for block in blocks(comment):
        item, tag = ITEM.match(block), TAG.match(block)
        if tag:
            result.tags[tag[1]] = words(tag[2])
        elif item:
            result.items[item[1]] = words(item[2])
        elif block.startswith('    '):
            lead_to_code(result.paragraphs)
            result.paragraphs.append(block)
        elif block.strip():
            result.paragraphs.append(words(block))
    return result


def lead_to_code(paragraphs):
    if paragraphs and not paragraphs[-1].endswith(('.', ':')):
        paragraphs[-1] += ':'


def first_sentence(text):
    """The first sentence, and the rest. A period ends a sentence if a capital letter or nothing follows."""
    match = re.match(r'(.*?[^.])[.:](?: (?=[A-Z]|duet_)(.*))?$', text, re.S)
    return (match[1], match[2] or '') if match else (text, '')
