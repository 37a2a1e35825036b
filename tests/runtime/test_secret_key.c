/* tests/runtime/test_secret_key.c -- ChaCha20 against the vectors of RFC 8439, and keys. */
#include "runtime/base/secret_key.h"
#include "runtime/ls_chacha.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* Bytes as pairs of hexadecimal digits; blanks are skipped. */
static void read_bytes(const char *text, uint8_t *to, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        unsigned byte;
        text += strspn(text, " ");
        ck_assert_int_eq(sscanf(text, "%2x", &byte), 1);
        to[k] = (uint8_t)byte;
        text += 2;
    }
}

static uint32_t word(const uint8_t *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Of section 2.3.2, and of appendix A.1. */
static const struct { const char *key, *nonce; uint32_t counter; const char *block;
} vector[] = {
    {"00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e "
     "1f",
     "00 00 00 09 00 00 00 4a 00 00 00 00", 1,
     "10 f1 e7 e4 d1 3b 59 15 50 0f dd 1f a3 20 71 c4 c7 d1 f4 c7 33 c0 68 03 04 22 aa 9a c3 d4 6c "
     "4e "
     "d2 82 64 46 07 9f aa 09 14 c2 d7 05 d9 8b 02 a2 b5 12 9c d1 de 16 4e b9 cb d0 83 e8 a2 50 3c "
     "4e"},
    {"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
     "00",
     "00 00 00 00 00 00 00 00 00 00 00 00", 0,
     "76 b8 e0 ad a0 f1 3d 90 40 5d 6a e5 53 86 bd 28 bd d2 19 b8 a0 8d ed 1a a8 36 ef cc 8b 77 0d "
     "c7 "
     "da 41 59 7c 51 57 48 8d 77 24 e0 3f b8 d8 4a 37 6a 43 b8 f4 15 18 a1 1c c3 87 b6 69 b2 ee 65 "
     "86"},
    {"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
     "00",
     "00 00 00 00 00 00 00 00 00 00 00 00", 1,
     "9f 07 e7 be 55 51 38 7a 98 ba 97 7c 73 2d 08 0d cb 0f 29 a0 48 e3 65 69 12 c6 53 3e 32 ee 7a "
     "ed "
     "29 b7 21 76 9c e6 4e 43 d5 71 33 b0 74 d8 39 d5 31 ed 1f 28 51 0a fb 45 ac e1 0a 1f 4b 79 4d "
     "6f"},
    {"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
     "01",
     "00 00 00 00 00 00 00 00 00 00 00 00", 1,
     "3a eb 52 24 ec f8 49 92 9b 9d 82 8d b1 ce d4 dd 83 20 25 e8 01 8b 81 60 b8 22 84 f3 c9 49 aa "
     "5a "
     "8e ca 00 bb b4 a7 3b da d1 92 b5 c4 2f 73 f2 fd 4e 27 36 44 c8 b3 61 25 a6 4a dd eb 00 6c 13 "
     "a0"},
    {"00 ff 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
     "00",
     "00 00 00 00 00 00 00 00 00 00 00 00", 2,
     "72 d5 4d fb f1 2e c4 4b 36 26 92 df 94 13 7f 32 8f ea 8d a7 39 90 26 5e c1 bb be a1 ae 9a f0 "
     "ca "
     "13 b2 5a a2 6c b4 a6 48 cb 9b 9d 1b e6 5b 2c 09 24 a6 6c 54 d5 45 ec 1b 73 74 f4 87 2e 99 f0 "
     "96"},
    {"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
     "00",
     "00 00 00 00 00 00 00 00 00 00 00 02", 0,
     "c2 c6 4d 37 8c d5 36 37 4a e2 04 b9 ef 93 3f cd 1a 8b 22 88 b3 df a4 96 72 ab 76 5b 54 ee 27 "
     "c7 "
     "8a 97 0e 0e 95 5c 14 f3 a8 8e 74 1b 97 c2 86 f7 5f 8f c2 99 e8 14 83 62 fa 19 8a 39 53 1b ed "
     "6d"},
};

START_TEST(blocks_are_those_of_the_rfc)
{
    uint8_t bytes[32], nonce[12], want[64];
    uint32_t key[LS_KEY_WORDS], block[LS_BLOCK_WORDS];
    read_bytes(vector[_i].key, bytes, sizeof bytes);
    read_bytes(vector[_i].nonce, nonce, sizeof nonce);
    read_bytes(vector[_i].block, want, sizeof want);
    for (int k = 0; k < LS_KEY_WORDS; k++)
        key[k] = word(bytes + 4 * k);
    ls_chacha_block(key, vector[_i].counter, word(nonce), word(nonce + 4), word(nonce + 8), block);
    for (int k = 0; k < LS_BLOCK_WORDS; k++)
        ck_assert_msg(block[k] == word(want + 4 * k), "word %d is %08x, not %08x", k, block[k],
                      word(want + 4 * k));
}
END_TEST

START_TEST(keys_and_their_bits_differ)
{
    LsSecretKey a, b;
    ck_assert(ls_key_new(&a) && ls_key_new(&b));
    ck_assert_int_ne(memcmp(&a, &b, sizeof a), 0);
    for (int k = 0; k < LS_KEY_WORDS; k++)
        ck_assert(a.word[k] != b.word[k]);
    a = ls_key_of_seed(5, 0);
    b = ls_key_of_seed(5, 0);
    ck_assert_int_eq(memcmp(&a, &b, sizeof a), 0);
    b = ls_key_of_seed(5, 1);
    ck_assert_int_ne(memcmp(&a, &b, sizeof a), 0);
    b = ls_key_of_seed(5 + (UINT64_C(1) << 32), 0);
    ck_assert_int_ne(memcmp(&a, &b, sizeof a), 0);
    static const uint64_t of[] = {
        0, 1, 7, 8, 9, 15, 16, UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1};
    enum { N = sizeof of / sizeof *of };
    uint64_t bits[N * 8];
    int n = 0;
    for (int k = 0; k < N; k++)
        for (int i = 0; i < 8; i++)
            bits[n++] = ls_key_bits(&a, of[k], of[i]);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < k; i++)
            ck_assert_msg(bits[k] != bits[i], "%d and %d", k, i);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("secret_key");
    tcase_add_loop_test(t, blocks_are_those_of_the_rfc, 0, sizeof vector / sizeof *vector);
    tcase_add_test(t, keys_and_their_bits_differ);
    return run_tests("secret_key", t);
}
