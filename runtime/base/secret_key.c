/* runtime/base/secret_key.c -- see secret_key.h. */
#include "runtime/base/secret_key.h"

#include "runtime/ls_chacha.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

bool ls_key_new(LsSecretKey *to)
{
    char *at = (char *)to->word, *const end = at + sizeof to->word;
    while (at < end) {
        const ssize_t n = getrandom(at, (size_t)(end - at), 0);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
    }
    return true;
}

LsSecretKey ls_key_of_seed(uint64_t seed, uint32_t use)
{
    const uint32_t key[LS_KEY_WORDS] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t block[LS_BLOCK_WORDS];
    LsSecretKey to;
    ls_chacha_block(key, use, 0, 0, 0, block);
    memcpy(to.word, block, sizeof to.word);
    return to;
}

uint64_t ls_key_bits(const LsSecretKey *key, uint64_t of, uint64_t index)
{
    uint32_t block[LS_BLOCK_WORDS];
    ls_chacha_block(key->word, (uint32_t)(index / 8), 0, (uint32_t)of, (uint32_t)(of >> 32), block);
    const size_t at = 2 * (size_t)(index % 8);
    return block[at] | (uint64_t)block[at + 1] << 32;
}
