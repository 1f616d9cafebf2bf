/* A stand-in for NVIDIA's management library, libnvidia-ml.so.1, on machines
 * without a driver. It shows the GPUs that the environment describes; see
 * nvml_stub.py for the format. Structures and numbers are those of nvml.h.
 *
 * A symbol that is not here is reported by nvidia-ml-py as function not found,
 * as an older driver's would be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999,
};

enum { MAX_GPUS = 16, MAX_SLICES = 7, TEXT = 96 };

/* What the driver of an H200 keeps for itself (580.159.04). */
static const unsigned long long RESERVED = 644939776;

typedef struct device {
    char name[TEXT];
    char uuid[TEXT];
    unsigned long long total, used;
    unsigned int utilization;
    int is_slice;
    unsigned int slices;
    struct device *slice[MAX_SLICES];
} device_t;

static device_t gpus[MAX_GPUS], all_slices[MAX_GPUS * MAX_SLICES];
static unsigned int gpu_count, slice_count;
static int initialized;

static int read_device(const char *line, device_t *device) {
    memset(device, 0, sizeof *device);
    return sscanf(line, "%*[^|]|%95[^|]|%95[^|]|%llu|%llu|%u", device->name, device->uuid,
                  &device->total, &device->used, &device->utilization) == 5;
}

static int read_line(const char *line) {
    if (strncmp(line, "gpu|", 4) == 0 && gpu_count < MAX_GPUS)
        return read_device(line, &gpus[gpu_count++]);
    if (strncmp(line, "mig|", 4) == 0 && gpu_count > 0) {
        device_t *gpu = &gpus[gpu_count - 1];
        if (gpu->slices == MAX_SLICES)
            return 0;
        device_t *slice = &all_slices[slice_count++];
        gpu->slice[gpu->slices++] = slice;
        int is_read = read_device(line, slice);
        slice->is_slice = 1;
        return is_read;
    }
    return 0;
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    const char *error = getenv("LOCALCLUSTER_NVML_ERROR");
    if (error && *error)
        return atoi(error);
    const char *described = getenv("LOCALCLUSTER_GPUS");
    if (!described)
        return DRIVER_NOT_LOADED;
    gpu_count = slice_count = 0;
    char *copy = strdup(described), *rest = copy, *line;
    int is_good = copy != NULL;
    while (is_good && (line = strsep(&rest, "\n")) != NULL)
        is_good = *line == '\0' || read_line(line);
    free(copy);
    initialized = is_good;
    return is_good ? SUCCESS : UNKNOWN;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    if (!initialized)
        return UNINITIALIZED;
    initialized = 0;
    return SUCCESS;
}

static int copy_text(const char *text, char *target, unsigned int length) {
    if (strlen(text) >= length)
        return INSUFFICIENT_SIZE;
    strcpy(target, text);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return copy_text("580.95.05", version, length);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 13000;
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    if (!initialized)
        return UNINITIALIZED;
    *count = gpu_count;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_t **device) {
    if (!initialized)
        return UNINITIALIZED;
    if (index >= gpu_count)
        return INVALID_ARGUMENT;
    *device = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetName(device_t *device, char *name, unsigned int length) {
    return copy_text(device->name, name, length);
}

int nvmlDeviceGetUUID(device_t *device, char *uuid, unsigned int length) {
    return copy_text(device->uuid, uuid, length);
}

/* As the real library, which counts here what the driver keeps for itself. */
int nvmlDeviceGetMemoryInfo(device_t *device, unsigned long long memory[3]) {
    memory[0] = device->total;
    memory[1] = device->total - device->used - RESERVED;
    memory[2] = device->used + RESERVED;
    return SUCCESS;
}

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} memory_v2_t;

int nvmlDeviceGetMemoryInfo_v2(device_t *device, memory_v2_t *memory) {
    if (memory->version != (sizeof *memory | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    memory->total = device->total;
    memory->reserved = RESERVED;
    memory->free = device->total - device->used - RESERVED;
    memory->used = device->used;
    return SUCCESS;
}

/* As the real library, which cannot tell the use of a slice. */
int nvmlDeviceGetUtilizationRates(device_t *device, unsigned int rates[2]) {
    if (device->is_slice || device->slices)
        return 3; /* not supported */
    rates[0] = device->utilization;
    rates[1] = device->total ? (unsigned int)(100 * device->used / device->total) : 0;
    return SUCCESS;
}

/* The first call asks for the size; no process uses these GPUs. */
int nvmlDeviceGetComputeRunningProcesses_v3(device_t *device, unsigned int *count, void *infos) {
    (void)device, (void)infos;
    *count = 0;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device_t *device, unsigned int *current, unsigned int *pending) {
    *current = *pending = device->slices > 0;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device_t *device, unsigned int *count) {
    *count = device->slices ? MAX_SLICES : 0;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device_t *device, unsigned int index, device_t **slice) {
    if (index >= MAX_SLICES)
        return INVALID_ARGUMENT;
    if (index >= device->slices)
        return NOT_FOUND;
    *slice = device->slice[index];
    return SUCCESS;
}

int nvmlDeviceIsMigDeviceHandle(device_t *device, unsigned int *is_slice) {
    *is_slice = (unsigned int)device->is_slice;
    return SUCCESS;
}
