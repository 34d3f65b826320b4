/* staging.c - pinned blocks of the pool, and copies by the host's machine. */
#include "staging.h"
#include "pool.h"
#include "status.h"

void staging_open(staging *g, int device)
{
    void *block;
    error_text before;
    error_keep(&before);
    if (!g->set || pool_take(HOST, 2 * g->set, 0, &block) != DUET_OK) return error_put_back(&before);
    if (pool_pin(block, device)) g->block = block;
    else pool_give(HOST, block, 0);
}

void staging_close(staging *g)
{
    pool_give(HOST, g->block, 0);
    g->block = NULL;
}

/* Copies the bytes as f32 elements: a program that only moves elements does not change their bits. */
duet_status staging_copy(void *to, const void *from, size_t bytes)
{
    const program p = { .length = 2,
                        .inputs = 1,
                        .outputs = 1,
                        .code = { { .op = OP_LOAD, .type = DUET_F32, .arg = { { FROM_INPUT, 0 } } },
                                  { .op = OP_STORE, .type = DUET_F32 } } };
    const int64_t count = (int64_t)(bytes / sizeof(float));
    const layout all = { .type = DUET_F32, .rank = 1, .size = { count }, .stride = { 1 } };
    step s = { .kernel = KERNEL_PROGRAM,
               .outs = 1,
               .ins = 1,
               .out = { { 0, all } },
               .in = { { 1, all } },
               .program = &p };
    s.bytes = 2 * (double)bytes;
    const duet_status st =
        device_machine(HOST)->run(&s, &(frame){ (void *[]){ to, (void *)(uintptr_t)from }, NULL, 0, HOST });
    device_machine(HOST)->forget(&s);
    return st;
}
