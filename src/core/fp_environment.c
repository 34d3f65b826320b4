/* fp_environment.c - enters and leaves the default floating-point environment where the caller's differs. */
#include "fp_environment.h"
#include "thread.h"

/* FE_DFL_ENV keeps the bits that flush subnormal numbers in some C libraries. */
void fp_enter_foreign(fp_scope *s)
{
    thread *t = thread_mine; /* NULL in the threads of OpenMP */
    (void)fegetenv(&s->caller);
    (void)fesetenv(FE_DFL_ENV);
    fp_set_registers(FP_DEFAULT);
    s->is_foreign = true;
    s->was_foreign = t && t->foreign_fp;
    if (t) t->foreign_fp = true;
}

void fp_leave_foreign(const fp_scope *s)
{
    if (thread_mine) thread_mine->foreign_fp = s->was_foreign;
    (void)fesetenv(&s->caller);
}
