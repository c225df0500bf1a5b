/* A pretended CUDA driver (libcuda.so.1): enough for FFmpeg to open a device. It logs which contexts are made. */

#include "log.h"

enum { MOST_DEVICES = 16 };
static unsigned primary_flags[MOST_DEVICES];
static int primary_users[MOST_DEVICES];
static __thread void *current;

static void note(int device, const char *call, const char *fields, ...) {
    va_list arguments;
    va_start(arguments, fields);
    note_for(device, call, fields, arguments);
    va_end(arguments);
}

int cuDeviceGet(int *device, int number) {
    const char *count = getenv("CUDA_PRETENDED_GPUS");
    *device = number;
    return number < (count ? atoi(count) : 1) ? 0 : 101;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    note(device, "cuCtxCreate", "\"flags\": %u", flags);
    *context = calloc(1, 8);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    static int contexts[MOST_DEVICES];
    primary_users[device]++;
    note(device, "cuDevicePrimaryCtxRetain", "\"flags\": %u", primary_flags[device]);
    *context = &contexts[device];
    return 0;
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    primary_flags[device] = flags;
    return 0;
}

int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) { return cuDevicePrimaryCtxSetFlags_v2(device, flags); }

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = primary_flags[device];
    *active = primary_users[device] > 0;
    return 0;
}

int cuCtxPushCurrent_v2(void *context) {
    current = context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context) {
    if (context) *context = current;
    return 0;
}

int cuCtxGetCurrent(void **context) {
    *context = current;
    return 0;
}

int cuGetErrorName(int error, const char **text) {
    (void)error;
    *text = "CUDA_ERROR_PRETENDED";
    return 0;
}

int cuGetErrorString(int error, const char **text) { return cuGetErrorName(error, text); }
