/* runtime/cuda/cudnn_match.h -- the device and cuDNN version of a plan's text. */
#ifndef LS_CUDNN_MATCH_H
#define LS_CUDNN_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Whether the plan was made for this version of cuDNN and a device like this one (cuDNN's text of
 * the device). */
bool ls_dnn_plan_fits(const char *plan, const char *device, int64_t version);
/* The plan's text with its device replaced by this device (cuDNN's text of it), so that cuDNN
 * rebuilds the plan for the actual device. (An H200 also ran plans with another device's memory and
 * slot in them.) Freed by the caller; NULL: out of memory, or the plan names no device. */
char *ls_dnn_plan_here(const char *plan, const char *device);
/* The device name in the text of a plan or a device; "?": none. */
void ls_dnn_device_name(const char *json, char *name, size_t size);

/* Prints that plans are made again. plan: a plan that does not fit; NULL: the compiler made none.
 * why: the reason if the plan fits but cannot be used; NULL: it does not fit. */
void ls_dnn_note_again(FILE *to, const char *plan, const char *device, int64_t version,
                       const char *why);

#endif
