/* runtime/watch/image_grid.h -- --image-grid: inputs above what the evaluation form makes of them. */
#ifndef LS_RUNTIME_WATCH_IMAGE_GRID_H
#define LS_RUNTIME_WATCH_IMAGE_GRID_H

#include "runtime/engine/engine.h"

/* One column per sample, the first five of the data; rows: the first image input, then every
 * watched value ("code/..." first, then "out/..."): an image, or a vector as a square. Of an
 * autoencoder narrow outputs come before the others; without any, and without "code/", its
 * narrowest result is shown. PNG, or PPM by the name's end. */
bool ls_grid_write(LsEngine *g, LsLoader *l, const LsDataset *data, const char *path, LsError *e);

#endif
