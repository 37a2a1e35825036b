/* runtime/base/secret_key.h -- keys that only one process knows, and bits that are functions of
 * them (ls_chacha.h). */
#ifndef LS_RUNTIME_BASE_SECRET_KEY_H
#define LS_RUNTIME_BASE_SECRET_KEY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsSecretKey { uint32_t word[8]; } LsSecretKey;

/* From the operating system's generator. False: it gives nothing. */
bool ls_key_new(LsSecretKey *to);
/* For tests and experiments: a function of the seed and of what the key is for. */
LsSecretKey ls_key_of_seed(uint64_t seed, uint32_t use);
/* Number `index`, below 2^32, of the sequence `of`. */
uint64_t ls_key_bits(const LsSecretKey *key, uint64_t of, uint64_t index);

#endif
