/* ptx_writer.h - what the parts of the PTX writer share: ptx_operations.c writes formulas, ptx_operands.c
 * reads and writes memory, ptx_convert.c converts elements, ptx_write.c writes kernels.
 *
 * PTX has an unlimited number of registers, so each value gets its own. %v holds elements of the program's
 * type, %w and %d hold 32 and 64 bits as loaded from memory, %c holds predicates, %i indices. */
#ifndef PTX_WRITER_H
#define PTX_WRITER_H

#include "code_list.h"
#include "dtype.h"
#include "ptx_write.h"

typedef struct ptx_writer {
    ptx_text *t;
    const ptx_request *r;
    const code_list *l;
    const char *args; /* the name of the kernel's argument */
    /* how many registers and labels are used */
    int values, words, doubles, conditions, indices, labels;
    int *reg; /* of each value of the list, for the current element */
    bool failed;
} writer;

/* A divisor in the arguments, as the numbers of its registers (fast_divide.h). */
typedef struct divisor {
    int by, magic, shift;
} divisor;

/* How the elements of an input that repeats are found. */
typedef struct path {
    divisor run, size;
    int stride;
} path;

/* The arguments that all elements need. */
typedef struct arguments {
    uint32_t read, written; /* inputs and outputs */
    int single[PROGRAM_INPUTS];
    path in[PROGRAM_INPUTS];
    divisor size[DUET_RANK_MAX];
    int in_stride[PROGRAM_INPUTS][DUET_RANK_MAX], out_stride[PROGRAM_OUTPUTS][DUET_RANK_MAX];
} arguments;

/* The elements of a thread. */
typedef struct vector {
    int in[PROGRAM_INPUTS][4], out[4][PROGRAM_OUTPUTS];
    int given[4]; /* of the input that is GIVEN */
    int whole;    /* the condition that all exist */
} vector;

__attribute__((format(printf, 2, 3))) void ptx_put(writer *w, const char *format, ...);
#define put ptx_put

static inline int bytes_of(int type) { return (int)dtypes[type].bytes; }
static inline int fresh(writer *w) { return w->values++; }
static inline bool is_f64(const writer *w) { return w->r->type == DUET_F64; }
static inline bool is_integer(const writer *w) { return w->r->type == DUET_I64 || w->r->type == DUET_U64; }
static inline int bits(const writer *w) { return w->r->type == DUET_F32 ? 32 : 64; }
static inline const char *type(const writer *w)
{
    if (is_integer(w)) return w->r->type == DUET_I64 ? "s64" : "u64";
    return is_f64(w) ? "f64" : "f32";
}

/* Sets register `to` to the bits of an element. */
void ptx_constant(writer *w, int to, uint64_t value);

/* Writes the formula for one element, whose inputs are in registers in[]. Results are in out[]. */
void ptx_element(writer *w, const int in[], int out[]);

/* Elements as they are in memory: the kind of register that holds one ('v', 'w' or 'd'), and a new one.
 * The other functions convert an element after it was read, and before it is written. They return its
 * register. */
char ptx_kind(const writer *w, int type);
int ptx_fresh_raw(writer *w, int type);
int ptx_converted(writer *w, int from, int raw);
int ptx_stored(writer *w, int to, int x);

/* Read the arguments, the inputs of a single element, and the vector; write the results. %e is the first
 * element of the vector. */
void ptx_load_arguments(writer *w, arguments *a);
void ptx_load_singles(writer *w, arguments *a);
void ptx_load_vector(writer *w, const arguments *a, vector *x);
void ptx_load_whole(writer *w, const arguments *a, vector *x); /* if all elements exist */
void ptx_store_vector(writer *w, const arguments *a, vector *x);

/* Writes the formula for the elements of a vector. */
void ptx_elements(writer *w, vector *x);

/* Declares the registers that the writer has counted, and those with fixed names. */
void ptx_declare(writer *w);

#endif
