/* cli/options/option_values.h -- the text of one option to a value. */
#ifndef LS_CLI_OPTIONS_OPTION_VALUES_H
#define LS_CLI_OPTIONS_OPTION_VALUES_H

#include "compiler/ir/shape.h"

#include <stdbool.h>
#include <stdint.h>

/* Says that the option's value is not `want`; returns the exit code. */
int ls_options_bad(const char *option, const char *text, const char *want);
/* Index of text in the words, which end with NULL, or -1 after a message; `otherwise` if text is
 * NULL. */
int ls_options_word(const char *option, const char *text, const char *const *words, int otherwise);
/* Parses the value of an option from least to most; no text leaves *v as it is. 0, or the exit code
 * after a message. */
int ls_options_real(const char *option, const char *text, double least, double most, double *v);
/* "2x3x4", sizes above 0, to a shape; false: it is none. */
bool ls_settings_shape(const char *text, LsShape *shape);
/* A size above 0 and below 2^48 at the start of text, and where it ends. */
bool ls_options_count(const char *text, const char **end, int64_t *v);

#endif
