/* status.h - errors: fail() sets the status and the error text of the thread, TRY passes a status
 * on. */
#ifndef STATUS_H
#define STATUS_H

#include "compiler.h"
#include <duet/duet.h>
#include <stdbool.h>

/* Sets this thread's error text and returns s. Set a breakpoint here. */
duet_status fail(duet_status s, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Puts "where: " in front of the text, once: a text that already names a place keeps it. Returns s. */
duet_status fail_at(duet_status s, const char *where) __attribute__((cold));

/* Does this thread's text begin with "file:line: "? */
bool error_has_place(void);

/* Puts what failed, as "duet_set(f32[2,3])", and ": " in front of this thread's text, but behind
 * its "file:line: ". Returns s. */
duet_status fail_within(duet_status s, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* The thread's error text and status, saved so that it can be restored after an error that is handled. */
typedef struct error_text {
    char text[1024];
    duet_status status;
} error_text;
void error_keep(error_text *e);
void error_put_back(const error_text *e);

/* Changes the status of this thread's error, and keeps the text. Returns s. */
duet_status error_becomes(duet_status s);

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        duet_status tried_ = (call);                                                                         \
        if (unlikely(tried_ != DUET_OK)) return tried_;                                                      \
    } while (0)

#endif
