/* second_process.c - see second_process.h. Jobs go to the twin by its standard input; answers come back by another pipe, whose number it finds in its
 * environment. */
#include "second_process.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWERS "DUET_BENCH_TWIN"

static void become_twin(char **argv, const char *variable, const char *value, const int to[2],
                        const int from[2])
{
    char number[16];
    snprintf(number, sizeof number, "%d", from[1]);
    setenv(variable, value, 1), setenv(ANSWERS, number, 1);
    dup2(to[0], STDIN_FILENO);
    close(to[0]), close(to[1]), close(from[0]);
    execv("/proc/self/exe", argv);
    perror("twin");
    _exit(127);
}

twin twin_open(char **argv, const char *variable, const char *value)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from)) return perror("twin"), (twin){ 0 };
    signal(SIGPIPE, SIG_IGN); /* a twin that is gone is an answer too */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) become_twin(argv, variable, value, to, from);
    close(to[0]), close(from[1]);
    if (pid < 0) return perror("twin"), close(to[1]), close(from[0]), (twin){ 0 };
    return (twin){ to[1], from[0], pid };
}

void twin_serve(double (*work)(job j))
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

double twin_ask(twin *t, job j)
{
    double answer;
    if (!t->pid || write(t->to, &j, sizeof j) != sizeof j) return NAN;
    return read(t->from, &answer, sizeof answer) == sizeof answer ? answer : NAN;
}

void twin_close(twin *t)
{
    if (!t->pid) return;
    close(t->to), close(t->from);
    waitpid(t->pid, NULL, 0);
    t->pid = 0;
}
