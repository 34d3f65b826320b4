/* memory_report.c - duet_memory_report, and the largest matrices in the text of NO_MEMORY. */
#include "memory_report.h"
#include "c_locale.h"
#include "device_use.h"
#include "matrix.h"
#include "pool.h"
#include <string.h>

/* ---- the largest matrices in an error text ---- */

#define OWNERS_TEXT 400 /* at most; the rest of the text is for the statement */

/* "f32[2,3] created at train.c:7 (24 bytes)" */
static size_t owner_text(char *text, size_t size, const matrix_owner *o, const char *before)
{
    char kind[SHAPE_TEXT];
    shape_text(kind, o->at.type, o->at.rank, o->at.size);
    const int n = snprintf(text, size, "%s%s created at %s (%zu bytes)", before, kind,
                           o->site ? o->site : "an unknown place", o->total);
    return n < 0 ? size : (size_t)n;
}

duet_status name_owners(duet_status s, int device)
{
    matrix_owner list[OWNERS];
    char text[OWNERS_TEXT] = "", first[64], number[24] = "";
    size_t length = 0;
    const int count = matrix_owners(device, list);
    if (device > DEFAULT_GPU) snprintf(number, sizeof number, " (device %d)", device);
    snprintf(first, sizeof first, "; the largest matrices on the %s%s: ", device_name(device), number);
    for (int i = 0; i < count; i++) {
        const size_t more = owner_text(text + length, sizeof text - length, &list[i], i ? ", " : first);
        if (length + more >= sizeof text) {
            text[length] = 0;
            break;
        }
        length += more;
    }
    return fail(s, "%s%s", thread_get()->text, text);
}

/* ---- the report ---- */

static void print_name(FILE *out, int device)
{
    if (device > DEFAULT_GPU) fprintf(out, "memory of the %s on device %d\n", device_name(device), device);
    else fprintf(out, "memory of the %s\n", device_name(device));
}

static void print_limit(FILE *out, size_t limit)
{
    if (limit) fprintf(out, "limit %zu bytes\n", limit);
    else fprintf(out, "no limit\n");
}

/* What the pool does not know of: the context, kernels, handles of libraries, and other processes. */
static void print_overhead(FILE *out, int device, const duet_memory *m)
{
    const machine *on = device_machine(device);
    const size_t all = on->total ? on->total(device) : SIZE_MAX,
                 rest = all != SIZE_MAX ? on->available(device) : SIZE_MAX;
    if (rest == SIZE_MAX || all - rest < m->used + m->cached) return;
    fprintf(out,
            "         overhead %zu bytes: the CUDA context, kernels, vendor libraries and other processes\n",
            all - rest - m->used - m->cached);
}

static void print_device(FILE *out, int device)
{
    static const char *const kinds[MEMORY_KINDS] = { [MEMORY_MATRIX] = "matrices",
                                                     [MEMORY_SCRATCH] = "temporary buffers",
                                                     [MEMORY_WORKSPACE] = "workspaces of vendor libraries",
                                                     [MEMORY_PACKED] = "packed operands" };
    const duet_memory m = pool_memory(device);
    print_name(out, device);
    fprintf(out, "         used %zu bytes, cached %zu bytes, ", m.used, m.cached);
    print_limit(out, m.limit);
    for (int k = 0; k < MEMORY_KINDS; k++)
        fprintf(out, "         %s %zu bytes\n", kinds[k], pool_used_as((enum memory_kind)k, device));
    if (device == HOST) fprintf(out, "         plans %zu bytes, outside the limit\n", pool_plans());
    else print_overhead(out, device, &m);
}

static bool is_in_use(int device)
{
    const duet_memory m = pool_memory(device);
    return device == HOST || ((m.peak || m.limit) && device_machine(device) && !device_absent(device));
}

static void print_owner(FILE *out, const matrix_owner *o)
{
    char kind[SHAPE_TEXT];
    shape_text(kind, o->at.type, o->at.rank, o->at.size);
    fprintf(out, "         %s: %s", o->site ? o->site : "unknown place", kind);
    if (o->refs > 1) fprintf(out, ", one of %d matrices that share", o->refs);
    for (int d = 0, first = 1; d < DEVICES_MAX; d++) {
        if (!o->bytes[d]) continue;
        fprintf(out, "%s%zu bytes on the %s", first && o->refs > 1 ? " " : ", ", o->bytes[d], device_name(d));
        if (d > DEFAULT_GPU) fprintf(out, " (device %d)", d);
        first = 0;
    }
    fprintf(out, "\n");
}

void duet_memory_report(FILE *out)
{
    matrix_owner list[OWNERS];
    if (!out) return;
    USE_GPUS; /* the figures of a GPU are asked of it */
    const plain_numbers plain = plain_numbers_begin();
    for (int d = 0; d < DEVICES_MAX; d++)
        if (is_in_use(d)) print_device(out, d);
    const int count = matrix_owners(-1, list);
    fprintf(out, "largest matrices\n");
    for (int i = 0; i < count; i++) print_owner(out, &list[i]);
    if (!count) fprintf(out, "         none has a buffer\n");
    plain_numbers_end(plain);
}
