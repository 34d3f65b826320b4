/* second_process.c - starts this program again and sends it jobs; see second_process.h. Jobs go to
 * its standard input. Answers come back through a pipe; an environment variable has its file
 * descriptor. */
#include "second_process.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWERS "DUET_BENCH_ANSWERS"

static void become_second_process(char **argv, const char *variable, const char *value, const int to[2],
                                  const int from[2])
{
    char number[16];
    snprintf(number, sizeof number, "%d", from[1]);
    setenv(variable, value, 1);
    setenv(ANSWERS, number, 1);
    dup2(to[0], STDIN_FILENO);
    close(to[0]);
    close(to[1]);
    close(from[0]);
    execv("/proc/self/exe", argv);
    perror("second process");
    _exit(127);
}

second_process second_process_open(char **argv, const char *variable, const char *value)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from)) {
        perror("second process");
        return (second_process){ 0 };
    }
    signal(SIGPIPE, SIG_IGN); /* writing to an ended process must return an error */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) become_second_process(argv, variable, value, to, from);
    close(to[0]);
    close(from[1]);
    if (pid < 0) {
        perror("second process");
        close(to[1]);
        close(from[0]);
        return (second_process){ 0 };
    }
    return (second_process){ to[1], from[0], pid };
}

void second_process_serve(double (*work)(job j))
{
    const char *number = getenv(ANSWERS);
    job j;
    if (!number) return;
    while (read(STDIN_FILENO, &j, sizeof j) == sizeof j) {
        double answer = work(j);
        if (write(atoi(number), &answer, sizeof answer) != sizeof answer) break;
    }
    exit(0);
}

double second_process_call(second_process *t, job j)
{
    double answer;
    if (!t->pid || write(t->to, &j, sizeof j) != sizeof j) return NAN;
    if (read(t->from, &answer, sizeof answer) == sizeof answer) return answer;
    return NAN;
}

void second_process_close(second_process *t)
{
    if (!t->pid) return;
    close(t->to);
    close(t->from);
    waitpid(t->pid, NULL, 0);
    t->pid = 0;
}
