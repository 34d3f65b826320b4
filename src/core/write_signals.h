/* write_signals.h - lets a failed write return an error instead of ending the process. Writing to a pipe
 * that nobody reads raises SIGPIPE; writing beyond the process's limit of file sizes raises SIGXFSZ. */
#ifndef WRITE_SIGNALS_H
#define WRITE_SIGNALS_H

#include <signal.h>

/* Between begin and end this thread blocks both signals; end discards those that were raised in between.
 * Handlers and other threads are not affected. errno is not changed. Do not start threads in between,
 * because they would inherit the mask. */
typedef struct write_signals {
    sigset_t mask;    /* of the thread before */
    sigset_t pending; /* signals that are not ours to discard */
} write_signals;
write_signals write_signals_begin(void);
void write_signals_end(const write_signals *w);

#endif
