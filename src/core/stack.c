/* stack.c - finds out how large the stack of a thread is, and switches to another by makecontext. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "stack.h"
#include "status.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Kernels of this library need at most 220 KiB. NEEDED leaves room for BLAS, LAPACK, oneDNN and CUDA. */
#define NEEDED ((size_t)512 << 10)
#define OWN    ((size_t)1 << 20)
#define MARGIN ((size_t)64 << 10) /* more than the calls between stack_prepare and stack_run take */

/* The sanitizers do not know the stack. They need large ones anyway. */
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BY_SANITIZER
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || defined BY_SANITIZER ||                   \
    !defined HAVE_MAKECONTEXT
enum { MAY_SWITCH = 0 };
#else
enum { MAY_SWITCH = 1 };
#endif

/* If the system does not say where the stack is, it counts as large. A program that runs on stacks of its
 * own, such as coroutines, is never within the limits. */
static void find_limits(thread *t)
{
    pthread_attr_t of;
    void *low = NULL;
    size_t bytes = 0;
    const bool known = MAY_SWITCH && !pthread_getattr_np(pthread_self(), &of);
    if (known) (void)pthread_attr_getstack(&of, &low, &bytes);
    if (known) (void)pthread_attr_destroy(&of);
    t->stack_from = bytes ? (uintptr_t)low + (bytes < NEEDED ? bytes : NEEDED) : 0;
    t->stack_room = bytes ? (uintptr_t)low + bytes - t->stack_from : UINTPTR_MAX;
}

/* Is there enough room, and `more`? */
static bool suffices(thread *t, size_t more)
{
    if (t->on_own_stack) return true;
    if (!t->stack_from && !t->stack_room) find_limits(t);
    const uintptr_t above = (uintptr_t)__builtin_frame_address(0) - t->stack_from;
    return above < t->stack_room && above >= (t->stack_from ? more : 0);
}

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* The lowest page cannot be accessed. */
static duet_status take_own(thread *t)
{
    if (t->stack) return DUET_OK;
    void *p =
        mmap(NULL, OWN + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (p == MAP_FAILED)
        return fail(DUET_NO_MEMORY,
                    "the stack of this thread has less than %zu bytes left, and the system has "
                    "no %zu bytes for another",
                    NEEDED, OWN);
    (void)mprotect(p, page(), PROT_NONE);
    t->stack = p;
    return DUET_OK;
}

void stack_end(thread *t)
{
    if (t->on_own_stack || !t->stack) return;
    (void)munmap(t->stack, OWN + page());
    t->stack = NULL;
}

duet_status stack_prepare(void)
{
    thread *t = thread_get();
    return t->shared || suffices(t, MARGIN) ? DUET_OK : take_own(t);
}

/* ---- the switch ---- */

typedef struct call {
    stack_work *work;
    void *of;
    duet_status result;
    ucontext_t caller, own;
} call;

/* makecontext passes only numbers of type int. */
static void begin(unsigned high, unsigned low)
{
    call *c = (call *)((uintptr_t)high << 16 << 16 | low);
    c->result = c->work(c->of);
}

static duet_status run_on_own(thread *t, call *c)
{
    const uintptr_t at = (uintptr_t)c;
    if (getcontext(&c->own)) return fail(DUET_DEVICE_ERROR, "getcontext failed");
    c->own.uc_stack = (stack_t){ .ss_sp = (char *)t->stack + page(), .ss_size = OWN };
    c->own.uc_link = &c->caller;
    makecontext(&c->own, (void (*)(void))begin, 2, (unsigned)(at >> 16 >> 16), (unsigned)at);
    t->on_own_stack = true;
    const bool switched = !swapcontext(&c->caller, &c->own);
    t->on_own_stack = false;
    return switched ? c->result : fail(DUET_NO_MEMORY, "swapcontext failed");
}

duet_status stack_run(thread *t, stack_work *work, void *of)
{
    call c = { .work = work, .of = of };
    if (t->shared || suffices(t, 0)) return work(of);
    TRY(take_own(t));
    return run_on_own(t, &c);
}

typedef struct step_call {
    stack_step *run;
    const step *s;
    const frame *f;
} step_call;

static duet_status run_step(void *of)
{
    const step_call *c = of;
    return c->run(c->s, c->f);
}

duet_status stack_run_step(thread *t, stack_step *run, const step *s, const frame *f)
{
    return stack_run(t, run_step, &(step_call){ run, s, f });
}
