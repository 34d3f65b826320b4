/* status_checks.h - statements that must succeed, and those that must fail with words in the text. */
#ifndef STATUS_CHECKS_H
#define STATUS_CHECKS_H

#include "tap.h"
#include <duet/duet.h>
#include <string.h>

#define GOES(s) CHECK((s) == DUET_OK, "%s: %s", #s, duet_error())
#define FAILS(s, status, words)                                                                              \
    do {                                                                                                     \
        const duet_status s_ = (s);                                                                          \
        CHECK(s_ == (status) && strstr(duet_error(), words), "%s: %d, %s", #s, (int)s_, duet_error());       \
    } while (0)

#endif
