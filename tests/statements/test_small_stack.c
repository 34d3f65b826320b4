/* test_small_stack.c - every call of every_call.h in a thread with a small stack. The bits are those of a
 * thread with a stack of ordinary size. The memory below the stack cannot be accessed, so that a call that
 * needs more ends the test by a signal. */
#define _GNU_SOURCE
#include "by_sanitizer.h"
#include "every_outcome.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* docs/trust.md promises FREE. A thread's stack also holds the thread's variables, 60 KiB of them of
 * OpenBLAS. */
enum { FREE = 64 << 10, MOST = 4 << 20, GUARD = 1 << 20, STEP = 4 << 10, PAINT = 0x5a };

static char *stack; /* its lowest address */
static size_t stack_bytes;
static size_t deepest;
static const char *deepest_call = "";

static void on_signal(int number) { end_by_signal("# the stack was too small for "); }

/* A handler needs a stack of its own when that of the thread is exhausted. */
static void use_signal_stack(char *at, size_t bytes)
{
    (void)sigaltstack(&(stack_t){ .ss_sp = at, .ss_size = bytes }, NULL);
}

static void *note_free(void *arg)
{
    *(size_t *)arg = (size_t)((char *)__builtin_frame_address(0) - stack);
    return NULL;
}

static bool run_thread(void *(*body)(void *), void *arg)
{
    pthread_t t;
    pthread_attr_t how;
    pthread_attr_init(&how);
    bool ran = !pthread_attr_setstack(&how, stack, stack_bytes) && !pthread_create(&t, &how, body, arg);
    if (ran) pthread_join(t, NULL);
    pthread_attr_destroy(&how);
    return ran;
}

/* The smallest stack that has FREE bytes for the thread's function. */
static bool find_stack(void)
{
    size_t is_free = 0;
    char *all = mmap(NULL, GUARD + MOST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + GUARD, MOST, PROT_READ | PROT_WRITE)) return false;
    stack = all + GUARD;
    for (stack_bytes = FREE; stack_bytes < MOST && is_free < FREE; stack_bytes += STEP)
        (void)run_thread(note_free, &is_free);
    stack_bytes -= STEP;
    printf("# a stack of %zu bytes, %zu of them free\n", stack_bytes, is_free);
    return is_free >= FREE && is_free < FREE + 2 * STEP;
}

/* ---- one call in a thread ---- */

typedef struct job {
    const call *c;
    duet_matrix *const *m;
    outcome got;
    const char *top; /* of its stack */
    char text[256];
} job;

static void *run_job(void *arg)
{
    static char signal_stack[64 << 10];
    job *j = arg;
    j->top = __builtin_frame_address(0);
    use_signal_stack(signal_stack, sizeof signal_stack);
    j->got = outcome_of(j->c, j->m, make_call);
    snprintf(j->text, sizeof j->text, "%s", duet_error());
    return NULL;
}

static void note_depth(const job *j)
{
    size_t clean = 0;
    while (clean < stack_bytes && stack[clean] == PAINT) clean++;
    const size_t used = (size_t)(j->top - stack) - clean;
    if (used > deepest) deepest = used, deepest_call = j->c->name;
}

static void run_on_small_stack(job *j)
{
    memset(stack, PAINT, stack_bytes);
    CHECK(run_thread(run_job, j), "there is no thread for %s", j->c->name);
    note_depth(j);
}

static void compare(const call *c, duet_matrix *const *m)
{
    outcome plain = outcome_of(c, m, make_call);
    job j = { c, m };
    run_on_small_stack(&j);
    CHECK(plain.status == j.got.status, "%s: status %d, not %d: %s", c->name, j.got.status, plain.status,
          j.text);
    CHECK(same_outcome(&plain, &j.got), "%s: other bits", c->name);
    free_outcome(&plain);
    free_outcome(&j.got);
}

static void test_call(const call *c, bool share)
{
    guess g;
    duet_dtype t;
    duet_matrix *m[MATRICES] = { 0 };
    running = c->name;
    if (!guessed(c, &g, &t, share) || !CHECK(guess_take(m, c, &g, t), "%s", duet_error())) return;
    for (int k = 0; k < c->operands; k++) fill(m[k], false);
    compare(c, m);
    guess_give(m);
}

/* The library has no stack of its own for the new thread, and the system gives it none. */
static void *without_memory(void *arg)
{
    duet_matrix *const *m = arg;
    struct rlimit before;
    duet_expr sum = duet_sum(m[1], 0);
    CHECK(duet_set(m[0], sum) == DUET_OK && duet_set(m[0], 5) == DUET_OK, "%s", duet_error());
    duet_memory_trim();
    getrlimit(RLIMIT_AS, &before);
    setrlimit(RLIMIT_AS, &(struct rlimit){ 1 << 20, before.rlim_max });
    const duet_status refused = duet_set(m[0], duet_sum(m[1], 0));
    const bool says = strstr(duet_error(), "the stack of this thread") != NULL;
    setrlimit(RLIMIT_AS, &before);
    const float *p = duet_read(m[0]);
    CHECK(refused == DUET_NO_MEMORY && says, "status %d: %s", refused, duet_error());
    CHECK(p && p[0] == 5 && p[1] == 5, "the destination was changed");
    CHECK(duet_set(m[0], duet_sum(m[1], 0)) == DUET_OK && (p = duet_read(m[0])) && p[0] == 3, "%s",
          duet_error());
    return NULL;
}

static void test_without_memory(void)
{
    duet_matrix *m[] = { duet_full(DUET_F32, 5, 2), duet_ones(DUET_F32, 3, 2) };
    CHECK(duet_read(m[0]) && duet_read(m[1]), "%s", duet_error());
    CHECK(run_thread(without_memory, m), "no thread");
    duet_free(&m[0], &m[1]);
    tap_point("no memory for a stack");
}

int main(void)
{
    struct sigaction on = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
    if (by_sanitizer) {
        puts("1..0 # SKIP code with a sanitizer needs large stacks");
        return 0;
    }
    if (!find_stack()) return 1;
    sigaction(SIGSEGV, &on, NULL);
    test_without_memory();
    test_every_call(test_call);
    printf("# at most %zu bytes of stack, for %s\n", deepest, deepest_call);
    return tap_end();
}
