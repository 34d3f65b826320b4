/* write_signals.c - blocks the signals of failed writes in one thread. */
#include "write_signals.h"
#include <errno.h>
#include <time.h>

static const int raised_by_write[] = { SIGPIPE, SIGXFSZ };

write_signals write_signals_begin(void)
{
    write_signals w;
    sigset_t both;
    const int e = errno;
    sigemptyset(&both);
    for (int i = 0; i < 2; i++) sigaddset(&both, raised_by_write[i]);
    pthread_sigmask(SIG_BLOCK, &both, &w.mask);
    sigpending(&w.pending);
    errno = e;
    return w;
}

void write_signals_end(const write_signals *w)
{
    const int e = errno;
    sigset_t now, one;
    sigpending(&now);
    for (int i = 0; i < 2; i++) {
        const int s = raised_by_write[i];
        if (!sigismember(&now, s) || sigismember(&w->pending, s)) continue;
        sigemptyset(&one);
        sigaddset(&one, s);
        sigtimedwait(&one, NULL, &(struct timespec){ 0, 0 });
    }
    pthread_sigmask(SIG_SETMASK, &w->mask, NULL);
    errno = e;
}
