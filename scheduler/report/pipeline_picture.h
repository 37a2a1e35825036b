/* scheduler/report/pipeline_picture.h -- who runs which phase of which micro-batch when, in one
 * step of a pipeline. */
#ifndef LS_SCHEDULER_REPORT_PIPELINE_PICTURE_H
#define LS_SCHEDULER_REPORT_PIPELINE_PICTURE_H

#include <stdio.h>

#include "scheduler/pipeline/pipeline_simulation.h"

/* Prints one line per phase that a rank runs: rank, phase (B of orders that run W with it: BW),
 * micro-batch, begin and end in ns. Tab-separated; comments begin with #. */
void ls_pipeline_table(FILE *to, const LsPipelineTimes *times);

/* Draws the same as an SVG file: a row for each rank. */
void ls_pipeline_svg(FILE *to, const LsPipelineTimes *times, const char *title);

#endif
