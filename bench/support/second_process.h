/* second_process.h - runs this program a second time with another environment, in turns with the
 * first. It is needed because the library reads its environment only when it is loaded. */
#ifndef SECOND_PROCESS_H
#define SECOND_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* A job for the second process; the program defines what the members mean. */
typedef struct job {
    int64_t what, size, variant, calls;
} job;

typedef struct second_process {
    int to, from;
    pid_t pid; /* 0: not started */
} second_process;

/* Starts the same program with the same arguments and variable=value. The program must call
 * second_process_serve before it does anything else. */
second_process second_process_open(char **argv, const char *variable, const char *value);

/* In the second process: answers jobs until the first process ends, then exits. In the first
 * process: returns at once. */
void second_process_serve(double (*work)(job j));

double second_process_call(second_process *t,
                           job j); /* the return value of work; NAN if the process has ended */
void second_process_close(second_process *t);
#endif
