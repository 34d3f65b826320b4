/* by_sanitizer.h - is the program compiled with the address or the thread sanitizer? */
#ifndef BY_SANITIZER_H
#define BY_SANITIZER_H

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { by_sanitizer = 1 };
#elif defined __has_feature
enum { by_sanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { by_sanitizer = 0 };
#endif

#endif
