/* tests/support/fuzz_target.h -- readers as targets of fuzzing. A suite lists its targets in
 * `fuzz_target`. Its tests try damaged copies of small files on them (fuzz.h) and every file of
 * tests/findings/TARGET, which broke the target once. Built with -Dfuzz=true, the suite is instead
 * a program of libFuzzer's (tests/support/fuzz_driver.c). */
#ifndef LS_TESTS_SUPPORT_FUZZ_TARGET_H
#define LS_TESTS_SUPPORT_FUZZ_TARGET_H

#include "tests/support/fuzz.h"

typedef struct FuzzTarget {
    const char *name;
    void (*try)(const unsigned char *bytes, size_t n, uint64_t round, Dice *d);
    void (*open)(void);         /* before the first try, in an empty folder; NULL: nothing to do */
    const char *seed[8];        /* files to begin with, in the folder after `open`, or with a whole
                                 * path; those that are not there are left out */
} FuzzTarget;

extern const FuzzTarget fuzz_target[];  /* ends with a name of NULL */

/* Tries the file's bytes, with dice that depend on the bytes alone. */
void fuzz_bytes(const FuzzTarget *t, const unsigned char *bytes, size_t n);
/* Tries every beginning of every first file, one byte longer each; after `open`. */
void fuzz_truncate(const FuzzTarget *t);
/* Tries every file of tests/findings/TARGET; returns how many there are. */
int fuzz_replay(const FuzzTarget *t);

#endif
