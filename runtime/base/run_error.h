/* runtime/base/run_error.h -- the first error, with its exit code.
 *
 * Functions that can fail take an LsError, return false and leave printing to main: workers run in
 * threads, and tests read the text. */
#ifndef LS_RUNTIME_BASE_RUN_ERROR_H
#define LS_RUNTIME_BASE_RUN_ERROR_H

#include <stdbool.h>

typedef enum {
    LS_EXIT_DONE = 0,
    LS_EXIT_FAIL = 1,           /* a result cannot be written, or memory allocation failed */
    LS_EXIT_USAGE = 2,
    LS_EXIT_DEVICE = 5,         /* the device, its driver or one of its libraries is missing or
                                 * failed */
    LS_EXIT_CHECK = 6,          /* the program is wrong: --check-gradients */
    LS_EXIT_DIVERGED = 7,       /* the loss or some other value is not finite */
    LS_EXIT_DATA = 8,           /* data or checkpoint unreadable */
    LS_EXIT_RANK = 9,           /* another rank died, cannot be reached or is of another run */
    LS_EXIT_INTERRUPTED = 130,
} LsExit;

typedef struct LsError { LsExit code; char text[600]; } LsError;

/* Keeps the first error and returns false, so callers write: return ls_fail(...). A text that is
 * too long keeps its beginning and its end. */
__attribute__((format(printf, 3, 4)))
bool ls_fail(LsError *e, LsExit code, const char *fmt, ...);
/* Puts '?' for every byte of somebody else's text that could do more on a terminal than be read. */
void ls_make_printable(char *text);

#endif
