/* cli/options/scale_spec.h -- parses --loss-scale: the scale's start and the machine that moves
 * it. */
#ifndef LS_CLI_OPTIONS_SCALE_SPEC_H
#define LS_CLI_OPTIONS_SCALE_SPEC_H

#include "compiler/passes/passes.h"

/* "none", a number, "dynamic" or "torch", the last two with settings: ":init=32768,period=2000".
 * NULL: dynamic if the program computes in f16, else none. False with a sentence in why. */
bool ls_scale_parse(const char *text, LsType compute, LsLossScale *to, char *why, size_t size);
/* The machines' settings and their defaults, a line each. */
void ls_scale_help(FILE *to);
/* "dynamic:init=32768,period=2000,factor=2,min=1", "1024", for people. */
const char *ls_scale_text(struct LsArena *a, const LsLossScale *s);

#endif
