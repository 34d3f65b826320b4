/* test_thread.c - each thread has a state of its own. A new thread starts with the defaults, also with the
 * thread pointer of one that has ended, and in a child of fork(). */
#include "status.h"
#include "tap.h"
#include "thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOGETHER 48

static pthread_barrier_t all_have_failed;

static bool is_new(void)
{
    return !*duet_error() && thread_get()->place == DUET_AUTO && thread_get()->threads == 0;
}

/* Leaves a state that the next thread must not see, and checks that it remains the thread's own. */
static void *use(void *waits)
{
    char own[64];
    CHECK(is_new(), "a new thread has the error text \"%s\"", duet_error());
    thread *const mine = thread_get();
    mine->place = DUET_CPU;
    mine->threads = 3;
    snprintf(own, sizeof own, "thread %p", (void *)mine);
    (void)fail(DUET_BAD_ARGUMENT, "%s", own);
    if (waits) pthread_barrier_wait(&all_have_failed);
    CHECK(thread_get() == mine, "another state");
    CHECK(strstr(duet_error(), own), "\"%s\" instead of \"%s\"", duet_error(), own);
    duet_matrix *m = duet_ones(DUET_F32, 16);
    float sum = 0;
    CHECK(m && duet_item(duet_sum(m), &sum) == DUET_OK && !(sum != 16), "sum %g: %s", (double)sum,
          duet_error());
    duet_free(&m);
    return NULL;
}

static void start(pthread_t *t, void *waits)
{
    if (pthread_create(t, NULL, use, waits)) {
        puts("Bail out! no thread");
        exit(1);
    }
}

static void one_after_another(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t t;
        start(&t, NULL);
        pthread_join(t, NULL);
    }
}

static void together(void)
{
    pthread_t t[TOGETHER];
    pthread_barrier_init(&all_have_failed, NULL, TOGETHER);
    for (int i = 0; i < TOGETHER; i++) start(&t[i], &all_have_failed);
    for (int i = 0; i < TOGETHER; i++) pthread_join(t[i], NULL);
    pthread_barrier_destroy(&all_have_failed);
}

static pthread_barrier_t running, may_end;

static void *wait_for_child(void *none)
{
    (void)fail(DUET_BAD_ARGUMENT, "a thread that the child does not have");
    pthread_barrier_wait(&running);
    pthread_barrier_wait(&may_end);
    return none;
}

/* In the child, the C library gives new threads the stacks of the parent's other threads. */
static void in_child(void)
{
    pthread_t t[8];
    int status = 0;
    pthread_barrier_init(&running, NULL, 9);
    pthread_barrier_init(&may_end, NULL, 9);
    for (int i = 0; i < 8; i++)
        if (pthread_create(&t[i], NULL, wait_for_child, NULL)) exit(1);
    pthread_barrier_wait(&running);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        tap_failures = 0;
        together();
        fflush(stdout);
        _exit(tap_failures != 0);
    }
    const bool ended = waitpid(child, &status, 0) == child;
    CHECK(ended && status == 0, "the child ended with status %d", status);
    pthread_barrier_wait(&may_end);
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
}

int main(void)
{
    in_child(); /* first: later, the stacks of threads that have ended would be used instead */
    tap_point("threads of a child");
    one_after_another(1000);
    tap_point("1000 threads, one after another");
    for (int i = 0; i < 20; i++) together();
    tap_point("48 threads at a time");
    return tap_end();
}
