/* scope.c - DUET_ON, DUET_MATH, DUET_TRANSFERS and DUET_THREADS: where the statements of a block run, in
 * which math mode, whether they may copy matrices between devices, and on how many threads. */
#include "status.h"
#include "thread.h"

duet_scope duet_scope_open(duet_place place)
{
    thread *t = thread_get();
    duet_scope s = { .on = 1, .before = (int)t->place };
    if ((unsigned)place <= DUET_GPU) t->place = place;
    else fail(DUET_BAD_ARGUMENT, "DUET_ON: place (%d) must be DUET_AUTO, DUET_CPU or DUET_GPU", (int)place);
    return s;
}

void duet_scope_close(duet_scope *s)
{
    if (s) thread_get()->place = (duet_place)s->before;
}

duet_scope duet_math_open(duet_math_mode math)
{
    thread *t = thread_get();
    duet_scope s = { .on = 1, .before = (int)t->math };
    if ((unsigned)math < MATH_MODES) t->math = math;
    else fail(DUET_BAD_ARGUMENT, "DUET_MATH: mode (%d) is not a math mode", (int)math);
    return s;
}

void duet_math_close(duet_scope *s)
{
    if (s) thread_get()->math = (duet_math_mode)s->before;
}

duet_scope duet_transfers_open(duet_transfers mode)
{
    thread *t = thread_get();
    duet_scope s = { .on = 1, .before = (int)t->transfers };
    if ((unsigned)mode <= DUET_TRANSFERS_FORBIDDEN) t->transfers = mode;
    else fail(DUET_BAD_ARGUMENT, "DUET_TRANSFERS: mode (%d) is not a duet_transfers", (int)mode);
    return s;
}

void duet_transfers_close(duet_scope *s)
{
    if (s) thread_get()->transfers = (duet_transfers)s->before;
}

duet_scope duet_threads_open(int threads)
{
    thread *t = thread_get();
    duet_scope s = { .on = 1, .before = t->threads };
    if (threads >= 0) t->threads = threads;
    else fail(DUET_BAD_ARGUMENT, "DUET_THREADS: threads (%d) must not be negative", threads);
    return s;
}

void duet_threads_close(duet_scope *s)
{
    if (s) thread_get()->threads = s->before;
}
