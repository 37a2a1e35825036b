/* cli/options/privacy_spec.h -- parses --dp: clipping, noise and the batch of private training. */
#ifndef LS_CLI_OPTIONS_PRIVACY_SPEC_H
#define LS_CLI_OPTIONS_PRIVACY_SPEC_H

#include "compiler/passes/passes.h"

#include <stddef.h>

/* "clip=1.0,noise=1.1,delta=1e-5[,expected-batch=N]"; NULL: not private. expected is 0 if it is not
 * given. False with a sentence in why. */
bool ls_privacy_parse(const char *text, LsPrivacy *to, char *why, size_t size);

#endif
