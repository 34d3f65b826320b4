/* digits_parallel.h - trains the dense network of digits.c on a group. digits_group.c uses it with a group in
 * one process, digits_mpi.c with a group of several processes. */
#ifndef DIGITS_PARALLEL_H
#define DIGITS_PARALLEL_H

#include "digits.h"

typedef struct digits_options {
    const char *folder; /* NULL: make images */
    duet_place place;
    int ranks, passes; /* ranks 0: as many as there are GPUs */
} digits_options;

/* Reads the command line, and then the images, or makes them. Returns false after printing an error to
 * stderr. */
bool digits_start(int argc, char **argv, digits_options *o, digits *d);

/* Trains the network, and tests it after each pass. prints: this process prints the results. */
duet_status digits_parallel(duet_group *g, const digits *d, int passes, bool prints);

/* Prints why a statement failed. */
void digits_complain(const char *program, duet_status s);

#endif
