/* dataset/array_file.h -- arrays of NPY files and of NPZ archives, compressed ones and those in
 * Fortran order, too. */
#ifndef LS_DATASET_ARRAY_FILE_H
#define LS_DATASET_ARRAY_FILE_H

#include "runtime/data/npz.h"

typedef struct LsArrayFile {
    char *name;    /* on the heap: of the member, or of the file without its ending */
    LsArray array; /* in the order of `fortran` */
    bool fortran;
    void *unpacked;
    size_t bytes; /* what was compressed, mapped from an unnamed file; NULL */
} LsArrayFile;

/* The array of an NPY file; member k of an NPZ, *found = false behind the last. folder: of a file
 * for what is unpacked. Close what was found, also after an error. */
bool ls_array_file_npy(LsArrayFile *a, const LsFile *f, LsError *e);
bool ls_array_file_npz(LsArrayFile *a, const LsFile *f, uint32_t k, const char *folder, bool *found,
                       LsError *e);
void ls_array_file_close(LsArrayFile *a);
/* Samples first..first + n - 1, row-major and in this machine's byte order. */
void ls_array_file_rows(const LsArrayFile *a, int64_t first, int64_t n, unsigned char *to);

#endif
