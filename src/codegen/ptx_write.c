/* ptx_write.c - writes kernels as PTX (ptx_write.h). A thread computes one vector. It reads all inputs first.
 * Where not all elements of the vector exist, those that do are read and written one by one. */
#include "ptx_writer.h"
#include <stdlib.h>

/* ---- places of arguments ---- */

bool ptx_walks(const ptx_request *r)
{
    bool walk = r->out_walks;
    for (int k = 0; k < PROGRAM_INPUTS; k++) walk |= r->access[k] == PTX_WALK;
    return walk;
}

bool ptx_repeats(int access)
{
    return access == PTX_ROUND || access == PTX_CYCLE || access == PTX_RUNS || access == PTX_ANY;
}

static int take(int *at, int bytes)
{
    const int here = *at;
    *at += bytes;
    return here;
}

ptx_places ptx_places_of(const ptx_request *r)
{
    ptx_places p;
    int at = r->head;
    p.n = take(&at, 8);
    p.lead = take(&at, 8);
    for (int k = 0; k < r->outputs; k++) p.out[k] = take(&at, 8);
    for (int k = 0; k < r->inputs; k++) p.in[k] = take(&at, 8);
    p.numbers = take(&at, r->numbers * (r->type == DUET_F32 ? 4 : 8));
    p.sizes = take(&at, ptx_walks(r) ? 12 * r->rank : 0);
    for (int k = 0; k < r->inputs; k++) {
        const int words = r->access[k] == PTX_WALK    ? r->rank
                          : ptx_repeats(r->access[k]) ? PTX_REPEAT_WORDS
                                                      : 0;
        p.in_words[k] = take(&at, 4 * words);
    }
    for (int k = 0; k < r->outputs && r->out_walks; k++) p.out_strides[k] = take(&at, 4 * r->rank);
    p.bytes = (at + 7) / 8 * 8;
    return p;
}

/* The threads of a warp read all lines of the arguments at once, so that later reads find them in the
 * cache. What they read is shifted right by the block size, at least 32, which gives 0. The compiler
 * does not know this, so it keeps the loads. They do not wait for the previous kernel. */
#define LINE 64
static void touch_arguments(writer *w, int bytes)
{
    if (bytes <= LINE) return;
    const int lane = w->indices++;
    put(w,
        "mov.u32 %%i%d, %%laneid;\nmul.lo.u32 %%i%d, %%i%d, %d;\nmin.u32 %%i%d, %%i%d, %d;\n"
        "cvt.u64.u32 %%address, %%i%d;\nmov.u64 %%offset, %s;\nadd.s64 %%address, %%address, %%offset;\n"
        "ld.param.b32 %%i%d, [%%address];\nmov.u32 %%count, %%ntid.x;\nshr.b32 %%i%d, %%i%d, %%count;\n"
        "setp.ne.u32 %%skip, %%i%d, 0;\n@%%skip ret;\n",
        lane, lane, lane, LINE, lane, lane, bytes - 4, lane, w->args, lane, lane, lane, lane);
}

/* ---- kernels ---- */

static void kernel(writer *w)
{
    const int width = w->r->width;
    arguments a = { .read = 0 };
    vector x;
    put(w, "mov.u32 %%block, %%ctaid.x;\nmov.u32 %%thread, %%tid.x;\n");
    touch_arguments(w, ptx_places_of(w->r).bytes);
    ptx_load_arguments(w, &a);
    put(w,
        "mul.wide.u32 %%e, %%block, %d;\ncvt.u64.u32 %%offset, %%thread;\nadd.s64 %%e, %%e, %%offset;\n"
        "mul.lo.s64 %%e, %%e, %d;\nsub.s64 %%e, %%e, %%lead;\n",
        w->r->threads, width);
    if (w->r->waits) put(w, "griddepcontrol.wait;\n");
    put(w, "setp.ge.s64 %%end, %%e, %%n;\n@%%end ret;\n");
    ptx_load_singles(w, &a);
    ptx_load_vector(w, &a, &x);
    ptx_elements(w, &x);
    if (w->r->waits) put(w, "griddepcontrol.launch_dependents;\n");
    ptx_store_vector(w, &a, &x);
    put(w, "ret;\n");
}

void ptx_declare(writer *w)
{
    put(w,
        ".reg .b%d %%v<%d>;\n.reg .b32 %%w<%d>;\n.reg .b64 %%d<%d>;\n.reg .pred %%c<%d>;\n.reg .b32 "
        "%%i<%d>;\n.reg .pred %%skip, %%end;\n"
        ".reg .b64 %%in<%d>;\n.reg .b64 %%out<%d>;\n"
        ".reg .b64 %%n, %%lead, %%e, %%offset, %%address;\n"
        ".reg .b32 %%block, %%thread, %%count, %%word;\n.reg .b16 %%half;\n",
        bits(w), w->values + 1, w->words + 1, w->doubles + 1, w->conditions + 1, w->indices + 1,
        PROGRAM_INPUTS, PROGRAM_OUTPUTS);
}

bool ptx_write(ptx_text *t, const ptx_request *r)
{
    ptx_text body = { 0 };
    writer w = { .t = &body, .r = r, .l = r->list, .args = "args" };
    *t = (ptx_text){ 0 };
    w.reg = malloc((size_t)(r->list->length + 1) * sizeof *w.reg);
    if (!w.reg) return false;
    kernel(&w);
    w.t = t;
    put(&w,
        ".version %s\n.address_size 64\n"
        ".visible .entry " PTX_ENTRY "(.param .align 8 .b8 args[%d])\n.maxntid %d, 1, 1\n{\n",
        r->waits ? "7.8\n.target sm_90" : "7.0\n.target sm_80", ptx_places_of(r).bytes, r->threads);
    ptx_declare(&w);
    put(&w, "%s}\n", body.at ? body.at : "");
    free(w.reg);
    free(body.at);
    return !w.failed && !t->full && !body.full;
}
