/* quick.h - the amount of work of a test program. */
#ifndef QUICK_H
#define QUICK_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --quick or DUET_TEST_QUICK: small shapes and few trials, for tools that slow programs down. */
static inline bool is_quick(int argc, char **argv)
{
    return getenv("DUET_TEST_QUICK") || (argc > 1 && !strcmp(argv[argc - 1], "--quick"));
}

/* The number of trials: the first argument if it is a positive number, else `few` or `many`. */
static inline int trial_count(int argc, char **argv, int few, int many)
{
    if (argc > 1 && atoi(argv[1]) > 0) return atoi(argv[1]);
    if (is_quick(argc, argv)) return few;
    return many;
}

#endif
