/* The log of calls: lines of JSON in the file that CUDA_PRETENDED_LOG names. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* `fields`: JSON behind the call's name, such as `"bytes": %zu`. */
static void note_for(int device, const char *call, const char *fields, va_list arguments) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static FILE *file;
    const char *path = getenv("CUDA_PRETENDED_LOG");
    if (!path) return;
    char text[512];
    vsnprintf(text, sizeof text, fields, arguments);
    pthread_mutex_lock(&lock);
    if (!file) file = fopen(path, "a");
    if (file) {
        fprintf(file, "{\"time\": %.6f, \"process\": %d, \"thread\": %d, \"device\": %d, \"call\": \"%s\"%s%s}\n", now(),
                getpid(), gettid(), device, call, *text ? ", " : "", text);
        fflush(file);
    }
    pthread_mutex_unlock(&lock);
}
