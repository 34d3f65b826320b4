/* ptx_write.h - a CUDA kernel, as PTX, from a list of operations (code_list.h). */
#ifndef PTX_WRITE_H
#define PTX_WRITE_H

#include "program.h"

struct code_list;

/* Text that grows. */
typedef struct ptx_text {
    char *at;
    size_t length, capacity;
    bool full; /* there was no memory for more */
} ptx_text;

/* How an input is read. Element e of the domain is
 *   DENSE    element e, in vectors
 *   LOOSE    element e, which is not aligned like the outputs
 *   SINGLE   the only element
 *   ROUND    element e % size, in vectors
 *   CYCLE    element e % size * stride
 *   RUNS     element e / run % size * stride, where runs are not shorter than a vector
 *   ANY      the same, with shorter runs or cycles
 *   WALK     found by the sizes of the domain and the strides of the operand
 *   GIVEN    not read: the template has computed it (PTX_JOINED) */
enum ptx_access {
    PTX_DENSE,
    PTX_LOOSE,
    PTX_SINGLE,
    PTX_ROUND,
    PTX_CYCLE,
    PTX_RUNS,
    PTX_ANY,
    PTX_WALK,
    PTX_GIVEN
};

/* What a kernel does with the elements: writes them, or reduces them. Then `outputs` is the number of
 * operands of the reduction. Element e of the domain is element e % n of result e / n for ROWS and FEW,
 * and element e / m of result e % m for COLUMNS and FEW_ACROSS, of n elements and m results.
 * JOINED: the template is the kernel of another operator. Either the program has its results as an input, and
 * the template stores the program's output; or the program computes an operand. */
enum ptx_form { PTX_ELEMENTS, PTX_ROWS, PTX_COLUMNS, PTX_FEW, PTX_FEW_ACROSS, PTX_JOINED, PTX_FORMS };

/* The kernel to write. It contains no padding, because it is part of a key. */
typedef struct ptx_request {
    const struct code_list *list;
    uint16_t threads;        /* of a block */
    uint16_t head;           /* bytes of a template's own argument, before that of the program */
    uint16_t kernel;         /* the template, if several have the same form */
    uint8_t type;            /* duet_dtype in which it computes: f32, f64, i64 or u64 */
    uint8_t width;           /* elements that a thread computes: 1, 2 or 4 */
    uint8_t waits;           /* is it launched early, and waits for the previous kernel? (capability 9.0) */
    uint8_t rank, out_walks; /* axes of the domain; do outputs have strides? */
    uint8_t inputs, outputs, numbers;                           /* how many the program has */
    uint8_t in_type[PROGRAM_INPUTS], out_type[PROGRAM_OUTPUTS]; /* duet_dtype */
    uint8_t access[PROGRAM_INPUTS];                             /* enum ptx_access */
    uint8_t form;                                               /* enum ptx_form */
    uint8_t zero[5];
} ptx_request;
_Static_assert(sizeof(ptx_request) == sizeof(void *) + 56, "no padding");

/* The argument of a kernel, which is as short as the program allows, because its first reads wait for
 * memory: the number of elements; the elements between an aligned address and the first element of each
 * dense operand; the addresses of outputs and inputs; numbers, in the element type; divisors
 * (fast_divide.h: by, magic and shift) and strides, of 32 bits. */
#define PTX_REPEAT_WORDS 7 /* run, size, stride */
#define PTX_WORDS                                                                                            \
    (PROGRAM_INPUTS * (DUET_RANK_MAX > PTX_REPEAT_WORDS ? DUET_RANK_MAX : PTX_REPEAT_WORDS) +                \
     (3 + PROGRAM_OUTPUTS) * DUET_RANK_MAX)
typedef struct ptx_args {
    uint64_t word[2 + PROGRAM_OUTPUTS + PROGRAM_INPUTS + PROGRAM_NUMBERS + PTX_WORDS / 2];
} ptx_args;

/* The places in it, in bytes. Of an input that repeats: its run, size and stride; of one that is walked:
 * strides, one for each axis. */
typedef struct ptx_places {
    int n, lead, out[PROGRAM_OUTPUTS], in[PROGRAM_INPUTS], numbers;
    int sizes, in_words[PROGRAM_INPUTS], out_strides[PROGRAM_OUTPUTS];
    int bytes;
} ptx_places;
ptx_places ptx_places_of(const ptx_request *r);
bool ptx_walks(const ptx_request *r); /* has it operands that are walked? */
bool ptx_repeats(int access);

#define PTX_ENTRY "duet_program"

/* Writes the text of a module with one kernel, PTX_ENTRY. The caller frees t->at, also after an error.
 * Errors    false if there is no memory, or if the list calls compiled functions, or if an output
 *           has a type to which PTX has no conversion here: integers of 64 bits from f32 and f64; f16 from
 *           f64; bf16 from f64 and integers */
bool ptx_write(ptx_text *t, const ptx_request *r);

/* A kernel as PTX in which placeholders stand for elements. The text may contain other kernels. */
typedef struct ptx_template {
    const char *text, *entry; /* entry: the name of the kernel */
    size_t length;
    const char *target; /* the directives .version and .target; NULL: for compute capability 8.0 */
} ptx_template;

/* Writes the kernel of a template, with code in place of each placeholder. A placeholder is the line
 *     // duet:COUNT result... given... element
 * which names registers. `element` contains the number of the first element. The results are COUNT elements
 * of the first output, then COUNT of the second one. `given` are COUNT elements of the input that is GIVEN,
 * if there is one. COUNT is the width or 1. Errors as ptx_write. */
bool ptx_fill_template(ptx_text *t, const ptx_request *r, const ptx_template *s);
#endif
