/* runtime/cuda/cudnn_match.h -- what device and version cuDNN's text of a plan was made for. */
#ifndef LS_CUDNN_MATCH_H
#define LS_CUDNN_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Whether the plan was made for this version of cuDNN and a device such as this one (cuDNN's text
 * of it). */
bool ls_dnn_plan_fits(const char *plan, const char *device, int64_t version);
/* The plan's text with this device (cuDNN's text of it) in the place of the one that it was made
 * for, so that what cuDNN works out again when it reads a plan is by the device that is there. (An
 * H200 ran plans with another's memory and slot in them, too.) To be freed; NULL: out of memory, or
 * no plan that names its device. */
char *ls_dnn_plan_here(const char *plan, const char *device);
/* The name in a plan's or a device's text; "?": there is none. */
void ls_dnn_device_name(const char *json, char *name, size_t size);

/* Says that plans are made again. plan: the one that does not fit; NULL: the compiler made none.
 * why: what is wrong with it though it fits; NULL: it does not. */
void ls_dnn_note_again(FILE *to, const char *plan, const char *device, int64_t version,
                       const char *why);

#endif
