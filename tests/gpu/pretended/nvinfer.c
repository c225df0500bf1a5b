/* A pretended TensorRT (libnvinfer.so.10): enough for ONNX Runtime to load its provider and to read its options. */

static void *nothing(void) { return 0; }

/* A C++ object all of whose virtual functions do nothing: the builder, the runtime, the parser. */
static void *object(void) {
    static void *functions[128];
    static void *only = functions;
    for (int i = 0; i < 128; i++) functions[i] = (void *)nothing;
    return &only;
}

void *getPluginRegistry(void) { return object(); }
void *createInferBuilder_INTERNAL(void) { return object(); }
void *createInferRuntime_INTERNAL(void) { return object(); }
void *createInferRefitter_INTERNAL(void) { return object(); }
void *createNvOnnxParser_INTERNAL(void) { return object(); }
void *createNvOnnxParserRefitter_INTERNAL(void) { return object(); }
int getInferLibVersion(void) { return 101000; }
