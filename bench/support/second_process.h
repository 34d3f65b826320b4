/* second_process.h - this program a second time, under another environment, working in turns with the first: what the library reads when it is
 * loaded cannot be changed later. */
#ifndef TWIN_H
#define TWIN_H

#include <stdint.h>
#include <sys/types.h>

/* What is asked of a twin, in the program's own terms. */
typedef struct job {
    int64_t what, size, variant, calls;
} job;

typedef struct twin {
    int to, from;
    pid_t pid; /* 0: there is none */
} twin;

/* Starts the twin: the same program with the same arguments, and variable=value. It must call twin_serve before anything else. */
twin twin_open(char **argv, const char *variable, const char *value);

/* In the twin: answers jobs until its elder ends, and then ends the process. Elsewhere: returns at once. */
void twin_serve(double (*work)(job j));

double twin_ask(twin *t, job j); /* what its work returned; NAN if it is gone */
void twin_close(twin *t);
#endif
