/* stack.h - plans and steps need more of the stack than small threads have. Where the caller's has too little
 * room left, work runs on a stack of the library's own, which the thread keeps until it ends. */
#ifndef STACK_H
#define STACK_H

#include "backend.h"
#include "thread.h"

typedef duet_status stack_work(void *of);
typedef duet_status stack_step(const step *s, const frame *f);

/* Is there enough room, as far as is known? */
static inline bool stack_suffices(const thread *t)
{
    return (uintptr_t)__builtin_frame_address(0) - t->stack_from < t->stack_room;
}

/* Does work where stack_suffices returned false. Errors: those of the work; NO_MEMORY */
duet_status stack_run(thread *t, stack_work *work, void *of) __attribute__((cold));

/* Runs a step where there is room. */
duet_status stack_run_step(thread *t, stack_step *run, const step *s, const frame *f) __attribute__((cold));
static inline duet_status stack_step_run(stack_step *run, const step *s, const frame *f)
{
    thread *t = thread_get();
    return likely(stack_suffices(t)) ? run(s, f) : stack_run_step(t, run, s, f);
}

/* Afterwards stack_run does not fail for lack of memory. Errors: NO_MEMORY */
duet_status stack_prepare(void);

/* Frees the thread's own stack, unless it runs there. */
void stack_end(thread *t);

#endif
