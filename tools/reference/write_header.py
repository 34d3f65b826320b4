"""Writes duet/reference.h, a prototype and a comment for each function, and duet/hover.h, in which the
macros of lift.h and call_site.h have the same comments."""
from layout import comment, comment_lines, prototype, sentence, wrapped
from subjects import HEADERS, SUBJECTS, by_subject

REFERENCE = '''/* reference.h - a prototype and a comment for each function of Duet, for reading and for editors. The build
 * makes this file from the rows of the .def files and the comments of the other headers. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_REFERENCE_H
#define DUET_REFERENCE_H
#ifdef __GNUC__ /* the other headers declare the same functions */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#endif
#ifdef __cplusplus
extern "C" {
#endif
'''
REFERENCE_END = '''
#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#endif
'''
HOVER = '''/* hover.h - the macros of Duet once more, with comments inside, because editors with clangd show the
 * definition of the macro that the pointer is on. The build makes this file. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_HOVER_H
#define DUET_HOVER_H
'''
MACROS = {'macro': ';    a macro in C, a template in C++', 'block': ' { ... }    a macro in C'}
HOVER_WIDTH = 72


def write_reference(path, functions):
    parts = [REFERENCE]
    for subject, members in by_subject(functions):
        if subject in HEADERS:
            continue
        parts.append(f'\n/* ---- {SUBJECTS[subject].lower()} {"-" * (88 - len(SUBJECTS[subject]))} */\n')
        parts += [entry(f) for f in members]
    path.write_text(''.join(parts) + REFERENCE_END)


def entry(function):
    head = wrapped(f'{function.name} - {sentence(function.summary)}')
    if function.kind in MACROS:
        shown = [f'    {prototype(function)}{MACROS[function.kind]}']
        return '\n' + comment(list(comment_lines(function, head + shown)), '/**') + '\n'
    attributes = 'static inline ' if function.kind == 'inline' else ''
    text = f'\n{comment(list(comment_lines(function, head)), "/**")}\n{prototype(function, attributes)};\n'
    return text if '_Complex' not in text else f'#ifndef __cplusplus{text}#endif\n'


def write_hover(path, functions, macros):
    """`macros` is a list of (name, parameters, body, in C only)."""
    named = {f.name: f for f in functions}
    parts = [HOVER]
    for only_c in False, True:
        parts.append('\n#ifndef __cplusplus\n' * only_c)
        parts += [macro(named[m.name], m) for m in macros if m.only_c == only_c and m.name in named]
        parts.append('\n#endif\n' * only_c)
    path.write_text(''.join(parts) + '#endif\n')


def macro(function, definition):
    """Both definitions of a macro must have the same words, so the compiler compares them. clangd lays the
    text out again, for 80 columns."""
    end = ' { ... }' if function.kind == 'block' else ';'
    head = [prototype(function) + end] + wrapped(sentence(function.summary), width=HOVER_WIDTH)
    text = comment(list(comment_lines(function, head, HOVER_WIDTH)), '/*')
    return f'\n#define {definition.name}({definition.parameters}) \\\n{text} \\\n    {definition.body}\n'
