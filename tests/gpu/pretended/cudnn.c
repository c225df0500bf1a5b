/* A pretended cuDNN (libcudnn.so.9): enough for ONNX Runtime to run a convolution, of which nothing is calculated.
   The functions that are not here answer "success" (conftest.py makes them). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INT64 = 3, DESCRIPTOR = 15, INT32 = 23 }; /* of cudnnBackendAttributeType_t */

size_t cudnnGetVersion(void) { return 91000; }
const char *cudnnGetErrorString(int status) { return status ? "pretended failure of cuDNN" : "CUDNN_STATUS_SUCCESS"; }
void cudnnGetLastErrorString(char *text, size_t bytes) {
    if (bytes) text[0] = 0;
}

typedef struct {
    unsigned x, y, z;
} dim3;
int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);

typedef struct {
    void *stream;
} Handle;

enum { EXECUTION_FAILED = 5000 };

int cudnnCreate(Handle **handle) {
    *handle = calloc(1, sizeof **handle);
    return 0;
}

int cudnnDestroy(Handle *handle) {
    free(handle);
    return 0;
}

int cudnnSetStream(Handle *handle, void *stream) {
    handle->stream = stream;
    return 0;
}

int cudnnGetStream(Handle *handle, void **stream) {
    *stream = handle->stream;
    return 0;
}

/* A convolution is one kernel. */
int cudnnBackendExecute(Handle *handle, void *plan, void *variant_pack) {
    (void)plan, (void)variant_pack;
    dim3 one = {1, 1, 1};
    return cudaLaunchKernel(NULL, one, one, NULL, 0, handle->stream) ? EXECUTION_FAILED : 0;
}

int cudnnBackendCreateDescriptor(int type, void **descriptor) {
    (void)type;
    *descriptor = calloc(1, 64);
    return 0;
}

int cudnnBackendDestroyDescriptor(void *descriptor) {
    free(descriptor);
    return 0;
}

/* One engine, plan or configuration where descriptors are asked for; numbers (sizes of memory that it needs) are 0. */
int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t room, int64_t *count, void *values) {
    (void)descriptor, (void)name;
    bool is_number = type == INT64 || type == INT32;
    if (count) *count = is_number || type == DESCRIPTOR;
    if (values && is_number && room > 0) memset(values, 0, type == INT64 ? 8 : 4);
    return 0;
}
