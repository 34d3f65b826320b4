/* generated.c - the cache of machine code, and the decision to make it (generated.h). */
#include "generated.h"
#include "executable.h"
#include "thread.h"
#include "x86_kernel.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES  ((size_t)16 << 20) /* beyond this, code that no step uses is freed */
#define ENTRY_BYTES 1024               /* about what an entry takes, besides its code */
#define AFTER       200e-6             /* seconds in the interpreter, after which code is made */

typedef struct generated_code {
    generated_kernel *run;
    size_t size;
} generated_code;

typedef struct key {
    generated_form form;
    program program;
} key;

/* Has the processor what code needs, besides AVX2, and has the build formulas? */
static bool is_possible(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("bmi2") && formulas_f32.constants;
#else
    return false;
#endif
}

static bool write_code(x86_code *x, const key *k)
{
    kernel_request r = { .wide = k->form.wide,
                         .type = (duet_dtype)k->form.type,
                         .scalars = k->form.scalars,
                         .streams = k->form.streams,
                         .inputs = k->form.inputs,
                         .numbers = k->form.numbers,
                         .outputs = k->form.outputs,
                         .row = k->form.row,
                         .part = k->form.part,
                         .functions = k->form.functions };
    code_list l;
    *x = (x86_code){ 0 };
    r.list = &l;
    bool done = code_list_make(&l, &k->program, r.type);
    if (done) code_list_drop_wraps(&l, k->form.bits);
    done = done && x86_kernel(x, &r);
    code_list_free(&l);
    return done;
}

/* Makes code, or an entry that says that there is none. */
static duet_status make(const void *from, void **thing, size_t *bytes)
{
    const key *k = from;
    generated_code *c = calloc(1, sizeof *c);
    if (!c) return DUET_NO_MEMORY;
    x86_code x;
    bool memory = true;
    if (write_code(&x, k)) {
        void *at = executable_make(x.byte, (size_t)x.length, &c->size);
        memory = at || errno != ENOMEM;
        memcpy(&c->run, &at, sizeof at);
    } else memory = !x.full;
    x86_free(&x);
    if (!memory) {
        free(c);
        return DUET_NO_MEMORY;
    }
    if (c->run) COUNT(generated);
    *thing = c;
    *bytes = (c->run ? c->size : ENTRY_BYTES) + ENTRY_BYTES;
    return DUET_OK;
}

static void end(void *thing)
{
    generated_code *c = thing;
    void *at;
    memcpy(&at, &c->run, sizeof at);
    if (at) executable_free(at, c->size);
    free(c);
}

static lru_cache cache = { .make = make, .end = end, .limit = CODE_BYTES, .lock = PTHREAD_MUTEX_INITIALIZER };

static __attribute__((noinline)) void find(generated_use *u, const program *p, const generated_form *form)
{
    key k;
    u->refused = true;
    if (!is_possible() || !code_formulas((duet_dtype)form->type)) return;
    memset(&k, 0, sizeof k);
    k.form = *form;
    const size_t length = program_bytes(p);
    memcpy(&k.program, p, length);
    error_text before; /* without memory for code the statement still succeeds */
    error_keep(&before);
    if (lru_acquire(&cache, &k, offsetof(key, program) + length, &u->item) != DUET_OK)
        error_put_back(&before);
    u->refused = !u->item || !((generated_code *)u->item->thing)->run;
}

generated_kernel *generated_for(generated_use *u, const program *p, const generated_form *form,
                                double seconds)
{
    if (u->refused || generated_when() == GENERATED_NEVER) return NULL;
    if (u->item) return ((generated_code *)u->item->thing)->run;
    if (generated_when() == GENERATED_WHEN_HOT && u->spent + seconds < AFTER) {
        u->spent += seconds;
        return NULL;
    }
    find(u, p, form);
    return u->refused ? NULL : ((generated_code *)u->item->thing)->run;
}

typedef struct question {
    const program *p;
    duet_dtype type;
    bool found;
} question;

static void look(const void *from, void *thing, void *argument)
{
    const key *k = from;
    const generated_code *c = thing;
    question *q = argument;
    if (c->run && k->form.type == q->type && k->program.length == q->p->length)
        q->found |= !memcmp(&k->program, q->p, program_bytes(q->p));
}

bool generated_exists(const program *p, duet_dtype type)
{
    if (generated_when() == GENERATED_NEVER) return false;
    question q = { p, type, false };
    lru_each(&cache, look, &q);
    return q.found;
}

void generated_forget(generated_use *u)
{
    if (u->item) lru_release(&cache, u->item);
    *u = (generated_use){ 0 };
}

void generated_clear(void) { lru_clear(&cache); }
