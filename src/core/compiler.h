// Hints to the compiler: which outcome of a condition is the usual one.
#pragma once

#define likely(condition)   __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
