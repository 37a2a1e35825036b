/* tests/support/cublas_stand_in.h -- ls_cuda_matmul without a device: products by the library of
 * fake_cublaslt.c. */
#ifndef LS_TESTS_SUPPORT_CUBLAS_STAND_IN_H
#define LS_TESTS_SUPPORT_CUBLAS_STAND_IN_H

void stand_in_open(const char *library);
void stand_in_close(void);

#endif
