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
/* The name in a plan's or a device's text; "?": there is none. */
void ls_dnn_device_name(const char *json, char *name, size_t size);

/* Says that plans are made again. plan: the one that does not fit; NULL: the compiler made none. */
void ls_dnn_note_again(FILE *to, const char *plan, const char *device, int64_t version);

#endif
