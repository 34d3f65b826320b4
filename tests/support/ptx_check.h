/* ptx_check.h - a random request for a kernel as PTX, and checks of the text that need no assembler: every
 * register is declared, and written before it is read; every label exists once; every brace is closed. */
#ifndef PTX_CHECK_H
#define PTX_CHECK_H

#include "code_list.h"
#include "ptx_write.h"
#include "tap.h"
#include "test_rng.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A type to which PTX of a program of type `from` converts its results. */
static inline duet_dtype any_ptx_output(duet_dtype from)
{
    static const duet_dtype to[] = { DUET_F32, DUET_F64, DUET_BOOL, DUET_I8,  DUET_I16, DUET_I32, DUET_U8,
                                     DUET_U16, DUET_U32, DUET_I64,  DUET_U64, DUET_F16, DUET_BF16 };
    if (from == DUET_I64 || from == DUET_U64) return to[draw(12)];
    const int k = draw(from == DUET_F64 ? 9 : 11);
    return to[k < 9 ? k : k + 2];
}

/* A random request for the program. */
static inline ptx_request any_ptx_request(const code_list *l, const program *p, duet_dtype type)
{
    const int most = type == DUET_F32 || (dtype_is_integer(type) && chance(50)) ? 4 : 2;
    const bool vectors = chance(70);
    ptx_request r = { .list = l,
                      .threads = vectors ? 256 : 64,
                      .type = (uint8_t)type,
                      .width = (uint8_t)(vectors ? most : 1),
                      .waits = chance(50),
                      .rank = (uint8_t)(1 + draw(DUET_RANK_MAX)),
                      .out_walks = chance(25),
                      .inputs = p->inputs,
                      .outputs = p->outputs,
                      .numbers = p->numbers };
    for (int k = 0; k < p->inputs; k++) {
        r.access[k] = (uint8_t)draw(PTX_WALK + 1);
        r.in_type[k] = (uint8_t)draw(DUET_BOOL + 1);
    }
    for (int k = 0; k < p->outputs; k++) r.out_type[k] = (uint8_t)any_ptx_output(type);
    return r;
}

/* Does the list call a compiled function? Those have no PTX. */
static inline bool calls_functions(const code_list *l, duet_dtype type)
{
    const formula_table *t = code_formulas(type);
    bool calls = false;
    for (int i = 0; i < l->length; i++) {
        const code_node *n = &l->node[i];
        calls |= n->operation == CODE_CALL || (n->operation == CODE_GUARD && !t->of[n->index].length);
    }
    return calls;
}

/* ---- the text ---- */

/* Names that differ in their number: registers, or labels. written: which registers have a value, and which
 * labels exist; read: which labels are jumped to. */
typedef struct ptx_names {
    char text[16];
    int count;
    bool *written, *read;
} ptx_names;

typedef struct ptx_reader {
    ptx_names names[32];
    int kinds, braces;
    const char *fault;
} ptx_reader;

/* Reads the letters and the number of a name; returns what follows. */
static inline const char *read_name(const char *at, char text[16], int *number)
{
    int n = 0;
    while (isalpha((unsigned char)*at) && n < 15) text[n++] = *at++;
    text[n] = 0;
    *number = isdigit((unsigned char)*at) ? (int)strtol(at, (char **)&at, 10) : 0;
    return at;
}

static inline ptx_names *names_of(ptx_reader *r, const char *text)
{
    for (int k = 0; k < r->kinds; k++)
        if (!strcmp(r->names[k].text, text)) return &r->names[k];
    return NULL;
}

static inline void add_names(ptx_reader *r, const char *text, int count)
{
    if (r->kinds == 32 || names_of(r, text)) {
        r->fault = "a name is declared twice";
        return;
    }
    ptx_names *n = &r->names[r->kinds++];
    strcpy(n->text, text);
    n->count = count;
    n->written = calloc(2 * (size_t)count, sizeof *n->written);
    n->read = n->written + count;
}

/* .reg .b32 %v<3>, %count; */
static inline void declare(ptx_reader *r, const char *at, const char *end)
{
    char text[16];
    int number;
    while ((at = memchr(at, '%', (size_t)(end - at)))) {
        at = read_name(at + 1, text, &number);
        add_names(r, text, *at == '<' ? atoi(at + 1) : 1);
    }
}

/* Registers of the system, such as %tid.x. */
static inline bool is_special(const char *text)
{
    return !strcmp(text, "tid") || !strcmp(text, "ctaid") || !strcmp(text, "ntid") || !strcmp(text, "laneid");
}

/* Reads or writes all registers between two places. */
static inline void use_registers(ptx_reader *r, const char *at, const char *end, bool writes)
{
    char text[16];
    int k;
    while (at < end && (at = memchr(at, '%', (size_t)(end - at)))) {
        at = read_name(at + 1, text, &k);
        ptx_names *n = names_of(r, text);
        if (is_special(text)) continue;
        if (!n || k >= n->count) r->fault = "a register is not declared";
        else if (writes) n->written[k] = true;
        else if (!n->written[k]) r->fault = "a register is read before it is written";
    }
}

static inline void use_label(ptx_reader *r, const char *at, bool exists)
{
    char text[16];
    int k;
    read_name(at, text, &k);
    ptx_names *n = names_of(r, text);
    if (!n || k >= n->count) r->fault = "the label has another name";
    else if (exists && n->written[k]) r->fault = "a label exists twice";
    else (exists ? n->written : n->read)[k] = true;
}

static inline bool begins_with(const char *at, const char *text) { return !strncmp(at, text, strlen(text)); }

/* Where the operand that an instruction writes ends: it is the first one, and may be a vector. */
static inline const char *end_of_result(const char *at, const char *end)
{
    if (begins_with(at, "st.") || begins_with(at, "bra") || begins_with(at, "ret")) return at;
    const char *first = memchr(at, ' ', (size_t)(end - at));
    if (!first) return at;
    const char *stop = memchr(first, first[1] == '{' ? '}' : ',', (size_t)(end - first));
    return stop ? stop : at;
}

static inline void read_instruction(ptx_reader *r, const char *at, const char *end)
{
    if (*at == '@') { /* a condition */
        const char *opcode = memchr(at, ' ', (size_t)(end - at));
        use_registers(r, at, opcode, false);
        at = opcode + 1;
    }
    const char *result = end_of_result(at, end);
    use_registers(r, result, end, false);
    use_registers(r, at, result, true);
    if (begins_with(at, "bra ")) use_label(r, at + 4, false);
    if (end[-1] != ';') r->fault = "an instruction has no semicolon";
}

static inline void read_line(ptx_reader *r, const char *at, const char *end)
{
    for (const char *c = at; c < end; c++) r->braces += (*c == '{') - (*c == '}');
    if (begins_with(at, ".reg ")) declare(r, at, end);
    else if (*at == '.' || *at == '{' || *at == '}') return;
    else if (end[-1] == ':') use_label(r, at, true);
    else read_instruction(r, at, end);
}

/* What is wrong with the text, or NULL. line: where, if something is wrong. */
static inline const char *ptx_fault(const char *text, int line[static 1])
{
    ptx_reader r = { .braces = 0 };
    const int most = (int)strlen(text) / 4 + 1; /* labels have at least four characters */
    add_names(&r, "L", most);
    add_names(&r, "moderate", most);
    *line = 0;
    for (const char *at = text, *end; *at && !r.fault; at = end + 1) {
        end = strchr(at, '\n');
        if (!end) return "the last line has no end";
        ++*line;
        if (end > at) read_line(&r, at, end);
    }
    if (r.braces && !r.fault) r.fault = "braces are not balanced";
    for (int k = 0; k < most && !r.fault; k++)
        for (int n = 0; n < 2; n++)
            if (r.names[n].read[k] && !r.names[n].written[k]) r.fault = "a label does not exist";
    for (int k = 0; k < r.kinds; k++) free(r.names[k].written);
    return r.fault;
}

/* The PTX for a program without reductions is complete, and consistent. It exists unless the
 * program calls compiled functions. Returns the text, which the caller frees, or NULL. */
static inline char *check_ptx(const program *p, duet_dtype type, bool *waits)
{
    code_list l;
    ptx_text t = { 0 };
    int line = 0;
    const bool listed = code_list_make(&l, p, type);
    if (listed) {
        const ptx_request r = any_ptx_request(&l, p, type);
        const bool written = ptx_write(&t, &r), calls = calls_functions(&l, type);
        const char *fault = written ? ptx_fault(t.at, &line) : NULL;
        CHECK(!fault, "PTX, line %d: %s", line, fault ? fault : "");
        CHECK(written == !calls, "%s", calls ? "PTX that calls functions" : "PTX was not written");
        *waits = r.waits;
        if (!written) {
            free(t.at);
            t.at = NULL;
        }
    }
    code_list_free(&l);
    return t.at;
}

#endif
