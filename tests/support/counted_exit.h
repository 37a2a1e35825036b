/* tests/support/counted_exit.h -- in every source of a build that counts lines: a process that
 * leaves by _exit, as a rank among failed ones does, keeps its counts. Includes nothing, as sources
 * have names of their own, such as write. */
#ifndef LS_TESTS_SUPPORT_COUNTED_EXIT_H
#define LS_TESTS_SUPPORT_COUNTED_EXIT_H

void __gcov_dump(void);
void _exit(int) __attribute__((noreturn));

__attribute__((unused, noreturn)) static inline void ls_counted_exit(int code)
{
    __gcov_dump();
    _exit(code);
}

#define _exit ls_counted_exit

#endif
