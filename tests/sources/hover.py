"""hover.py CLANGD FOLDER... - asks clangd, as an editor does, what it shows over calls in a C program; the
folders are searched for headers. Each answer must have the prototype and the first words of the
documentation. Reports in TAP."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CALLS = {  # the call, and words that the editor must show
    'duet_new(DUET_F32, 2, 3)': 'duet_new(duet_dtype type, int64_t size, ...); Creates a matrix of zeros',
    'duet_overwrite(x)': 'void *duet_overwrite(duet_matrix *m); For writing every element',
    'duet_softmax(x)': 'duet_expr duet_softmax(duet_expr x); exp(x) divided by its sum along the last axis',
    'duet_sum(x, 0)': 'duet_expr duet_sum(duet_expr x); The sum; 0 for an empty operand',
    'duet_matmul(x, x)': 'duet_expr duet_matmul(duet_expr x, duet_expr y); The matrix product',
    'duet_take(x, x, 0)': 'duet_take(duet_expr x, duet_expr indices, int axis); The elements of x',
    'duet_conv2d(x, x, .pad = { 1, 1 })': 'duet_expr duet_conv2d(duet_expr x, duet_expr filters,',
    'duet_free(&x, &x)': 'duet_free(duet_matrix **m); Frees a matrix and sets the pointer to NULL',
    'duet_set(x, 1)': 'duet_set(duet_matrix *m, duet_expr e); Evaluates e and stores the result in m',
    'duet_lu(x, x, x, x)': 'duet_status duet_lu(duet_matrix *l, duet_matrix *u, duet_matrix *p,',
    'duet_load_npy("x")': 'duet_matrix *duet_load_npy(const char *path); Loads the array of a .npy',
}


class Server:
    """A language server that is asked over its standard input and output."""

    def __init__(self, program):
        pipe, command = subprocess.PIPE, [program, '--log=error', '--background-index=false']
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.number = 0

    def send(self, method, parameters, **more):
        text = json.dumps({'jsonrpc': '2.0', 'method': method, 'params': parameters} | more).encode()
        self.process.stdin.write(b'Content-Length: %d\r\n\r\n' % len(text) + text)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while header := self.process.stdout.readline().strip():
            name, value = header.split(b':')
            length = int(value) if name.lower() == b'content-length' else length
        return json.loads(self.process.stdout.read(length))

    def ask(self, method, parameters):
        self.number += 1
        self.send(method, parameters, id=self.number)
        while (answer := self.receive()).get('id') != self.number or 'method' in answer:
            pass
        return answer.get('result')


def open_program(server, folder, includes):
    """A program with one call in each line."""
    flags = ['-std=gnu11'] + ['-I' + str(Path(i).absolute()) for i in includes]
    (folder / 'compile_flags.txt').write_text('\n'.join(flags))
    calls = ''.join(f'(void){call};\n' for call in CALLS)
    text = f'#include <duet/duet.h>\nvoid f(duet_matrix *x)\n{{\n{calls}}}\n'
    (folder / 'program.c').write_text(text)
    uri = (folder / 'program.c').as_uri()
    server.ask('initialize', {'processId': None, 'rootUri': folder.as_uri(), 'capabilities': {}})
    document = {'uri': uri, 'languageId': 'c', 'version': 1, 'text': text}
    server.send('textDocument/didOpen', {'textDocument': document})
    return uri


def words(text):
    return ' '.join(w for w in text.replace('\\', ' ').replace('*', ' * ').split() if w != '*')


def main(program, *includes):
    print(f'1..{len(CALLS)}')
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program)
        uri = open_program(server, Path(folder), includes)
        for i, (call, told) in enumerate(CALLS.items()):
            position = {'line': i + 3, 'character': len('(void)') + 2}
            answer = server.ask('textDocument/hover', {'textDocument': {'uri': uri}, 'position': position})
            shown = str((answer or {}).get('contents', {}).get('value'))
            good = words(told) in words(shown)
            print(f'{"ok" if good else "not ok"} {i + 1} - over {call}')
            for line in [] if good else shown.split('\n'):
                print('#', line)
        server.process.kill()


main(*sys.argv[1:])
