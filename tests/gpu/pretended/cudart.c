/* A pretended CUDA runtime (libcudart.so.13): ONNX Runtime's own CUDA provider runs on it, on a machine without a GPU.

   Device memory is the host's and begins as zeros. Kernels calculate nothing, so outputs that a kernel would have written
   stay zeros. Everything else is real: allocations and their limit, copies, streams, graphs, threads, errors.

   Time: a copy and a kernel keep their stream busy, and the one engine of the device that does such work.

       stream A   |--copy in--|--kernel--|--copy out--|
       stream B               |--copy in--|  waits  |--kernel--|--copy out--|

   A copy from or to pageable memory holds its caller until it is done; from or to pinned memory it returns at once, and
   cudaStreamSynchronize waits for it. Which memory is pinned is known from cudaHostRegister and cudaHostAlloc.

   Environment:
       CUDA_PRETENDED_LOG        file: a line of JSON for each call that a test may ask about
       CUDA_PRETENDED_GPUS       how many devices (default 1)
       CUDA_PRETENDED_MEMORY     bytes of each (default 8 GiB)
       CUDA_PRETENDED_COPY_MS    of each copy between host and device (default 0)
       CUDA_PRETENDED_KERNEL_MS  of each kernel (default 0)
       CUDA_PRETENDED_WORK_MS_PER_MB  kernels' time for each MB (10^6 bytes) that is copied to the device (default 0): a
                            device that takes its time for each picture, whatever the batch
       CUDA_PRETENDED_COPIES     `none`: nothing is copied between host and device. A GPU copies by itself, here the CPU does:
                            for measurements of processor time. What comes back is zeros
       CUDA_PRETENDED_ERRORS     file, which may come and go: lines `CALL ERROR [DEVICE]`; the call `*` is all of them, and
                            stays: that device is lost to this process */

#include "log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    OK = 0,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    NO_SUCH_DEVICE = 101,
    IS_REGISTERED = 712,
    NOT_REGISTERED = 713,
    NOT_SUPPORTED = 801,
    FORBIDDEN_WHILE_CAPTURING = 900,
};
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3 };
enum { MOST_DEVICES = 16, MOST_RANGES = 65536, GLOBAL_CAPTURE = 0 };

typedef struct {
    unsigned x, y, z;
} dim3;

typedef struct {
    int device;
    double busy_until;
    bool capturing;
    int kernels_captured;
} Stream;

typedef struct {
    double time;
} Event;

typedef struct {
    int kernels;
} Graph;

typedef struct {
    size_t used;
    int lost; /* the error that every call gives from now on */
    double kernels_until, copies_in_until, copies_out_until;
    Stream default_stream;
} Device;

typedef struct {
    uintptr_t begin, end;
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Device devices[MOST_DEVICES];
static Range pinned[MOST_RANGES];
static int pinned_count;
static int captures_global; /* that forbid allocations in all threads */

static __thread int current;
static __thread int last_error;

/* ---- settings, the log, errors to give ---- */

static double number(const char *name, double otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtod(text, NULL) : otherwise;
}

static int device_count(void) { return (int)number("CUDA_PRETENDED_GPUS", 1); }
static size_t memory(void) { return (size_t)number("CUDA_PRETENDED_MEMORY", 8.0 * (1u << 30)); }

static bool copies(void) {
    const char *text = getenv("CUDA_PRETENDED_COPIES");
    return !text || strcmp(text, "none");
}

static void sleep_until(double time) {
    double left = time - now();
    if (left > 0) usleep((useconds_t)(left * 1e6));
}

static void note(const char *call, const char *fields, ...) {
    va_list arguments;
    va_start(arguments, fields);
    note_for(current, call, fields, arguments);
    va_end(arguments);
}

static int failed(int error) {
    if (error) last_error = error;
    return error;
}

/* The error that the file CUDA_PRETENDED_ERRORS has for this call, or that of a lost device. */
static int wanted_error(const char *call) {
    if (devices[current].lost) return failed(devices[current].lost);
    const char *path = getenv("CUDA_PRETENDED_ERRORS");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return OK;
    char line[200], name[100];
    int found = OK, error;
    while (!found && fgets(line, sizeof line, file)) {
        int device = -1;
        if (sscanf(line, "%99s %d %d", name, &error, &device) < 2 || (device >= 0 && device != current)) continue;
        if (!strcmp(name, "*")) found = devices[current].lost = error;
        if (!strcmp(name, call)) found = error;
    }
    fclose(file);
    if (found) note(call, "\"error\": %d", found);
    return failed(found);
}

#define OR_ERROR(call)                      \
    do {                                    \
        int wanted = wanted_error(call);    \
        if (wanted) return wanted;          \
    } while (0)

int cudaGetLastError(void) {
    int error = devices[current].lost ? devices[current].lost : last_error;
    last_error = OK;
    return error;
}

int cudaPeekAtLastError(void) { return devices[current].lost ? devices[current].lost : last_error; }

const char *cudaGetErrorName(int error) {
    static __thread char text[40];
    if (error == OUT_OF_MEMORY) return "cudaErrorMemoryAllocation";
    if (error == 719) return "cudaErrorLaunchFailure";
    snprintf(text, sizeof text, "cudaError%d", error);
    return text;
}

const char *cudaGetErrorString(int error) {
    static __thread char text[40];
    if (error == OUT_OF_MEMORY) return "out of memory";
    if (error == 719) return "unspecified launch failure";
    snprintf(text, sizeof text, "pretended error %d", error);
    return text;
}

/* ---- devices ---- */

int cudaGetDeviceCount(int *count) {
    *count = device_count();
    return *count ? OK : failed(NO_DEVICE);
}

int cudaGetDevice(int *device) {
    *device = current;
    return OK;
}

/* Like the real one it makes the device's context, so it is logged each time. */
int cudaSetDevice(int device) {
    if (device < 0 || device >= device_count()) return failed(NO_SUCH_DEVICE);
    current = device;
    note("cudaSetDevice", "");
    return OK;
}

int cudaSetDeviceFlags(unsigned flags) {
    note("cudaSetDeviceFlags", "\"flags\": %u", flags);
    return OK;
}

/* The beginning of cudaDeviceProp, which has 1008 bytes in CUDA 13 (driver_types.h). */
typedef struct {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned luid_mask;
    size_t memory, shared_per_block;
    int registers_per_block, warp_size;
    size_t pitch;
    int threads_per_block, block_sides[3], grid_sides[3];
    size_t constant_memory;
    int major, minor;
    size_t texture_alignment, texture_pitch;
    int processors;
} Properties;
enum { PROPERTIES_BYTES = 1008 };

int cudaGetDeviceProperties(void *properties, int device) {
    (void)device;
    memset(properties, 0, PROPERTIES_BYTES);
    Properties known = {
        .name = "Pretended GPU",
        .memory = memory(),
        .shared_per_block = 48 * 1024,
        .registers_per_block = 65536,
        .warp_size = 32,
        .threads_per_block = 1024,
        .block_sides = {1024, 1024, 64},
        .grid_sides = {0x7fffffff, 65535, 65535},
        .major = 9,
        .processors = 132,
    };
    memcpy(properties, &known, sizeof known);
    return OK;
}

int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) { /* numbers of cudaDeviceAttr */
        case 1: *value = 1024; break;       /* threads of a block */
        case 8: case 81: case 97: *value = 227 * 1024; break; /* shared memory */
        case 10: *value = 32; break;        /* warp */
        case 16: *value = 132; break;       /* processors */
        case 39: *value = 2048; break;      /* threads of a processor */
        case 75: *value = 9; break;         /* compute capability */
        case 76: *value = 0; break;
        default: *value = 1;
    }
    return OK;
}

int cudaDriverGetVersion(int *version) {
    *version = 13000;
    return OK;
}

int cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

int cudaDeviceSynchronize(void) {
    OR_ERROR("cudaDeviceSynchronize");
    if (captures_global) return failed(FORBIDDEN_WHILE_CAPTURING);
    Device *device = &devices[current];
    sleep_until(device->kernels_until);
    sleep_until(device->copies_in_until);
    sleep_until(device->copies_out_until);
    return OK;
}

/* ---- device memory ---- */

enum { HEADER = 512 }; /* CUDA gives addresses that are multiples of this; size and device lie before them */

int cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    OR_ERROR("cudaMemGetInfo");
    *total = memory();
    *free_bytes = *total - devices[current].used;
    return OK;
}

int cudaMalloc(void **address, size_t bytes) {
    *address = NULL;
    OR_ERROR("cudaMalloc");
    if (captures_global) {
        note("cudaMalloc", "\"bytes\": %zu, \"error\": %d", bytes, FORBIDDEN_WHILE_CAPTURING);
        return failed(FORBIDDEN_WHILE_CAPTURING);
    }
    pthread_mutex_lock(&lock);
    bool fits = devices[current].used + bytes <= memory();
    if (fits) devices[current].used += bytes;
    pthread_mutex_unlock(&lock);
    size_t *header = fits ? aligned_alloc(HEADER, (bytes + 2 * HEADER - 1) / HEADER * HEADER) : NULL;
    note("cudaMalloc", "\"bytes\": %zu, \"used\": %zu, \"error\": %d", bytes, devices[current].used, header ? 0 : OUT_OF_MEMORY);
    if (!header) return failed(OUT_OF_MEMORY);
    header[0] = bytes;
    header[1] = (size_t)current;
    *address = memset((char *)header + HEADER, 0, bytes);
    return OK;
}

int cudaFree(void *address) {
    if (!address) return OK;
    size_t *header = (size_t *)((char *)address - HEADER);
    pthread_mutex_lock(&lock);
    devices[header[1]].used -= header[0];
    pthread_mutex_unlock(&lock);
    free(header);
    return OK;
}

int cudaFreeAsync(void *address, Stream *stream) {
    (void)stream;
    return cudaFree(address);
}

int cudaMallocFromPoolAsync(void **address, size_t bytes, void *pool, Stream *stream) {
    (void)pool, (void)stream;
    return cudaMalloc(address, bytes);
}

int cudaMemset(void *address, int value, size_t bytes) {
    OR_ERROR("cudaMemset");
    memset(address, value, bytes);
    return OK;
}

int cudaMemsetAsync(void *address, int value, size_t bytes, Stream *stream) {
    (void)stream;
    return cudaMemset(address, value, bytes);
}

int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    (void)symbol, (void)offset, (void)kind;
    memset(to, 0, bytes);
    return OK;
}

/* ---- pinned memory of the host ---- */

static const uintptr_t PAGE = 4096;

static Range pages(const void *address, size_t bytes) {
    uintptr_t begin = (uintptr_t)address, end = begin + bytes;
    return (Range){begin & ~(PAGE - 1), (end + PAGE - 1) & ~(PAGE - 1)};
}

static bool is_pinned(const void *address, size_t bytes) {
    uintptr_t begin = (uintptr_t)address;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pinned_count && !found; i++) found = pinned[i].begin <= begin && begin + bytes <= pinned[i].end;
    pthread_mutex_unlock(&lock);
    return found;
}

static int pin(Range range) {
    int error = OK;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pinned_count; i++)
        if (pinned[i].begin < range.end && range.begin < pinned[i].end) error = IS_REGISTERED;
    if (!error && pinned_count < MOST_RANGES) pinned[pinned_count++] = range;
    pthread_mutex_unlock(&lock);
    return error;
}

static int unpin(uintptr_t begin) {
    int error = NOT_REGISTERED;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pinned_count && error; i++)
        if (pinned[i].begin == begin) {
            pinned[i] = pinned[--pinned_count];
            error = OK;
        }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Pages, not bytes, are pinned: two arrays that share a page cannot both be. */
int cudaHostRegister(void *address, size_t bytes, unsigned flags) {
    (void)flags;
    OR_ERROR("cudaHostRegister");
    int error = pin(pages(address, bytes));
    note("cudaHostRegister", "\"bytes\": %zu, \"error\": %d", bytes, error);
    return failed(error);
}

int cudaHostUnregister(void *address) {
    int error = unpin((uintptr_t)address & ~(PAGE - 1));
    note("cudaHostUnregister", "\"error\": %d", error);
    return failed(error);
}

int cudaHostAlloc(void **address, size_t bytes, unsigned flags) {
    (void)flags;
    OR_ERROR("cudaHostAlloc");
    *address = aligned_alloc(PAGE, (bytes + PAGE) & ~(PAGE - 1));
    note("cudaHostAlloc", "\"bytes\": %zu", bytes);
    if (*address) memset(*address, 0, bytes);
    return failed(*address ? pin(pages(*address, bytes)) : OUT_OF_MEMORY);
}

int cudaMallocHost(void **address, size_t bytes) { return cudaHostAlloc(address, bytes, 0); }

int cudaFreeHost(void *address) {
    if (address) unpin((uintptr_t)address);
    note("cudaFreeHost", "");
    free(address);
    return OK;
}

int cudaPointerGetAttributes(void *attributes, const void *address) {
    (void)address;
    memset(attributes, 0, 32);
    return OK;
}

/* ---- streams, copies, kernels ---- */

static Stream *stream_of(Stream *stream) {
    if ((uintptr_t)stream > 2) return stream; /* 0, 1, 2: default streams */
    devices[current].default_stream.device = current;
    return &devices[current].default_stream;
}

/* Keeps a stream and the engine that does this work busy; returns when it will be done. */
static double work(Stream *stream, double *engine_until, double milliseconds) {
    pthread_mutex_lock(&lock);
    double begin = now();
    if (stream->busy_until > begin) begin = stream->busy_until;
    if (engine_until && *engine_until > begin) begin = *engine_until;
    double end = begin + milliseconds / 1e3;
    stream->busy_until = end;
    if (engine_until) *engine_until = end;
    pthread_mutex_unlock(&lock);
    return end;
}

static int copy(const char *call, void *to, const void *from, size_t bytes, int kind, Stream *given, bool waits) {
    OR_ERROR(call);
    Stream *stream = stream_of(given);
    if (waits && captures_global) return failed(FORBIDDEN_WHILE_CAPTURING);
    Device *device = &devices[stream->device];
    const void *host = kind == HOST_TO_DEVICE ? from : to;
    bool between = kind == HOST_TO_DEVICE || kind == DEVICE_TO_HOST;
    bool at_once = between && is_pinned(host, bytes);
    static const char *names[] = {"host to host", "to device", "to host", "on device", "by address"};
    note(call, "\"way\": \"%s\", \"bytes\": %zu, \"pinned\": %s, \"captured\": %s", names[kind], bytes,
         at_once ? "true" : "false", stream->capturing ? "true" : "false");
    if (!between || copies()) memmove(to, from, bytes);
    if (stream->capturing || !between) return OK;
    double *engine = kind == HOST_TO_DEVICE ? &device->copies_in_until : &device->copies_out_until;
    double done = work(stream, engine, number("CUDA_PRETENDED_COPY_MS", 0));
    if (kind == HOST_TO_DEVICE)
        work(stream, &device->kernels_until, (double)bytes / 1e6 * number("CUDA_PRETENDED_WORK_MS_PER_MB", 0));
    if (waits || !at_once) sleep_until(done);
    return OK;
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
    return copy("cudaMemcpy", to, from, bytes, kind, NULL, true);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, Stream *stream) {
    return copy("cudaMemcpyAsync", to, from, bytes, kind, stream, false);
}

int cudaMemcpy2DAsync(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height, int kind,
                      Stream *stream) {
    (void)kind, (void)stream;
    OR_ERROR("cudaMemcpy2DAsync");
    for (size_t row = 0; row < height; row++) memmove(to + row * to_pitch, from + row * from_pitch, width);
    return OK;
}

int cudaStreamCreateWithFlags(Stream **stream, unsigned flags) {
    (void)flags;
    OR_ERROR("cudaStreamCreateWithFlags");
    *stream = calloc(1, sizeof **stream);
    (*stream)->device = current;
    note("cudaStreamCreateWithFlags", "");
    return OK;
}

int cudaStreamCreate(Stream **stream) { return cudaStreamCreateWithFlags(stream, 0); }

int cudaStreamDestroy(Stream *stream) {
    if (stream->capturing && captures_global) captures_global--;
    free(stream);
    return OK;
}

int cudaStreamSynchronize(Stream *given) {
    OR_ERROR("cudaStreamSynchronize");
    if (stream_of(given)->capturing) return failed(FORBIDDEN_WHILE_CAPTURING);
    sleep_until(stream_of(given)->busy_until);
    return OK;
}

static int launch(Stream *given) {
    OR_ERROR("cudaLaunchKernel");
    Stream *stream = stream_of(given);
    if (stream->capturing) {
        stream->kernels_captured++;
        return OK;
    }
    note("cudaLaunchKernel", "");
    work(stream, &devices[stream->device].kernels_until, number("CUDA_PRETENDED_KERNEL_MS", 0));
    return OK;
}

int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, Stream *stream) {
    (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared;
    return launch(stream);
}

int __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, Stream *stream) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

int cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, Stream *stream) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

typedef struct {
    dim3 grid, block;
    size_t shared;
    Stream *stream;
} Configuration;

int cudaLaunchKernelExC(const Configuration *configuration, const void *kernel, void **arguments) {
    (void)kernel, (void)arguments;
    return launch(configuration->stream);
}

/* `kernel<<<grid, block, shared, stream>>>()` is a push here and a pop in the kernel's own stub. */
static __thread Configuration pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, Stream *stream) {
    pushed = (Configuration){grid, block, shared, stream};
    return 0;
}

int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, Stream **stream) {
    *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared, *stream = pushed.stream;
    return OK;
}

int cudaLaunchHostFunc(Stream *stream, void (*function)(void *), void *argument) {
    sleep_until(stream_of(stream)->busy_until);
    function(argument);
    return OK;
}

/* ---- events ---- */

int cudaEventCreateWithFlags(Event **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return OK;
}

int cudaEventCreate(Event **event) { return cudaEventCreateWithFlags(event, 0); }

int cudaEventDestroy(Event *event) {
    free(event);
    return OK;
}

int cudaEventRecord(Event *event, Stream *stream) {
    event->time = stream_of(stream)->busy_until;
    return OK;
}

int cudaEventRecordWithFlags(Event *event, Stream *stream, unsigned flags) {
    (void)flags;
    return cudaEventRecord(event, stream);
}

int cudaEventSynchronize(Event *event) {
    OR_ERROR("cudaEventSynchronize");
    sleep_until(event->time);
    return OK;
}

int cudaEventElapsedTime(float *milliseconds, Event *begin, Event *end) {
    *milliseconds = (float)((end->time - begin->time) * 1e3);
    return OK;
}

int cudaStreamWaitEvent(Stream *given, Event *event, unsigned flags) {
    (void)flags;
    Stream *stream = stream_of(given);
    if (event->time > stream->busy_until) stream->busy_until = event->time;
    return OK;
}

/* ---- graphs ---- */

int cudaStreamBeginCapture(Stream *stream, int mode) {
    OR_ERROR("cudaStreamBeginCapture");
    note("cudaStreamBeginCapture", "\"mode\": %d", mode);
    stream->capturing = true;
    stream->kernels_captured = 0;
    if (mode == GLOBAL_CAPTURE) captures_global++;
    return OK;
}

int cudaStreamIsCapturing(Stream *stream, int *status) {
    *status = stream_of(stream)->capturing;
    return OK;
}

int cudaStreamEndCapture(Stream *stream, Graph **graph) {
    note("cudaStreamEndCapture", "\"kernels\": %d", stream->kernels_captured);
    if (captures_global) captures_global--;
    stream->capturing = false;
    *graph = calloc(1, sizeof **graph);
    (*graph)->kernels = stream->kernels_captured;
    return OK;
}

int cudaGraphInstantiate(Graph **runnable, Graph *graph, unsigned long long flags) {
    (void)flags;
    *runnable = calloc(1, sizeof **runnable);
    **runnable = *graph;
    return OK;
}

int cudaGraphDestroy(Graph *graph) {
    free(graph);
    return OK;
}

int cudaGraphExecDestroy(Graph *graph) { return cudaGraphDestroy(graph); }

int cudaGraphLaunch(Graph *graph, Stream *given) {
    OR_ERROR("cudaGraphLaunch");
    Stream *stream = stream_of(given);
    note("cudaGraphLaunch", "\"kernels\": %d", graph->kernels);
    work(stream, &devices[stream->device].kernels_until, graph->kernels * number("CUDA_PRETENDED_KERNEL_MS", 0));
    return OK;
}

/* ---- asked for and of no effect ---- */

int cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, unsigned long long flags, int *status) {
    (void)name, (void)version, (void)flags;
    *found = NULL;
    if (status) *status = 1; /* cudaDriverEntryPointSymbolNotFound */
    return OK;
}

/* The beginning of cudaFuncAttributes. */
typedef struct {
    size_t shared, constant, local;
    int threads_per_block, registers, ptx_version, binary_version;
} KernelAttributes;

int cudaFuncGetAttributes(KernelAttributes *attributes, const void *kernel) {
    (void)kernel;
    *attributes = (KernelAttributes){.threads_per_block = 1024, .registers = 32, .ptx_version = 90, .binary_version = 90};
    return OK;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel, int size, size_t shared,
                                                          unsigned flags) {
    (void)kernel, (void)size, (void)shared, (void)flags;
    *blocks = 2;
    return OK;
}

int __cudaGetKernel(const void **kernel, const void *function) {
    *kernel = function;
    return OK;
}

void **__cudaRegisterFatBinary(void *binary) {
    static void *handle[4];
    (void)binary;
    return handle;
}

int cudaLibraryLoadData(void) { return NOT_SUPPORTED; }
int cudaMemPoolCreate(void **pool, const void *properties) {
    (void)properties;
    *pool = calloc(1, 8);
    return OK;
}

int cudaMemPoolDestroy(void *pool) {
    free(pool);
    return OK;
}
