/* tests/support/fake_stream.h -- how the fake libraries give work to a stream: in the order of the
 * fake CUDA runtime where the program that loaded them has it, else at once. */
#ifndef LS_TESTS_SUPPORT_FAKE_STREAM_H
#define LS_TESTS_SUPPORT_FAKE_STREAM_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

typedef void (*FakeWork)(const void *data);

/* Does work(copy of data), at once or in its turn on the stream; a recording stream records it. */
static inline void fake_stream_work(void *stream, FakeWork work, const void *data, size_t bytes)
{
    void (*give)(void *, FakeWork, const void *, size_t);
    *(void **)&give = dlsym(RTLD_DEFAULT, "fake_cudart_work");
    if (give != NULL && stream != NULL)
        give(stream, work, data, bytes);
    else
        work(data);
}

/* Whether the stream is being recorded. */
static inline bool fake_stream_records(void *stream)
{
    bool (*records)(void *);
    *(void **)&records = dlsym(RTLD_DEFAULT, "fake_cudart_records");
    return records != NULL && stream != NULL && records(stream);
}

#endif
