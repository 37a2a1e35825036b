/* tests/support/cudnn_stand_in.h -- ls_cuda_conv without a device: convolutions by the library that
 * LOWERSET_CUDNN names. */
#ifndef LS_TESTS_SUPPORT_CUDNN_STAND_IN_H
#define LS_TESTS_SUPPORT_CUDNN_STAND_IN_H

void cudnn_stand_in_open(void);
/* The numbers of plans used as the compiler made them, and of plans made again. */
void cudnn_stand_in_close(int *kept, int *again);

#endif
