/* environment.h - reads environment variables that could do harm in a process with raised rights. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/* The value of a variable that names a library or a file. NULL if the variable is not set, or if the
 * process has more rights than its user, as setuid programs have: the user chose the value. */
const char *environment_trusted(const char *name);

#endif
