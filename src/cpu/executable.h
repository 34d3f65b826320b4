/* executable.h - memory for machine code that is made at run time. */
#ifndef EXECUTABLE_H
#define EXECUTABLE_H

#include <stddef.h>
#include <stdint.h>

/* Copies code to pages of its own that can be executed, but not written. The pages are private, so
 * that a process after fork() keeps its own copy.
 * Returns   its address, and the size of the pages in *size; NULL if the system refuses */
void *executable_make(const uint8_t *code, size_t length, size_t *size);
void executable_free(void *code, size_t size);

#endif
