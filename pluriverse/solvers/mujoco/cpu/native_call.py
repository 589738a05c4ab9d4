"""Native calls: MuJoCo's C functions from inside a kernel, and memory that belongs to MuJoCo.

Addresses are numbers of 64 bits; `library` finds them. A *worker* holds what one thread needs to step one
world at a time: a model and data for each group. A thread acquires a worker for the duration of a step.
"""

import warp as wp


@wp.func_native("""
double* to = (double*)destination;
const double* from = source.data + start;
for (int32_t k = 0; k < count; ++k) to[k] = from[k];
""")
def put_numbers(destination: wp.uint64, source: wp.array(dtype=wp.float64), start: int, count: int):
    """Copy numbers of an array to MuJoCo."""
    ...


@wp.func_native("""
const double* from = (const double*)source;
double* to = destination.data + start;
for (int32_t k = 0; k < count; ++k) to[k] = from[k];
""")
def get_numbers(source: wp.uint64, destination: wp.array(dtype=wp.float64), start: int, count: int):
    """Copy numbers of MuJoCo into an array."""
    ...


@wp.func_native("""
unsigned char* to = (unsigned char*)destination;
const unsigned char* from = source.data + start;
for (int32_t k = 0; k < count; ++k) to[k] = from[k];
""")
def put_bytes(destination: wp.uint64, source: wp.array(dtype=wp.uint8), start: int, count: int):
    """Copy bytes of an array to MuJoCo."""
    ...


@wp.func_native("""
const double* from = values.data + start;
int32_t outside = 0;
for (int32_t k = 0; k < count; ++k) outside |= !(from[k] < bound && -from[k] < bound);
return outside == 0;
""")
def are_below(values: wp.array(dtype=wp.float64), start: int, count: int, bound: wp.float64) -> bool:
    """Return whether the magnitudes of an array's numbers are below a bound; NaN is not."""
    ...


@wp.func_native("""
memcpy((void*)destination, (const void*)source, (size_t)count);
""")
def copy_memory(destination: wp.uint64, source: wp.uint64, count: wp.int64):
    """Copy bytes from one address to another."""
    ...


@wp.func_native("""
memset((void*)destination, 0, (size_t)count);
""")
def clear_memory(destination: wp.uint64, count: wp.int64):
    """Set bytes to zero."""
    ...


@wp.func_native("""
return *(const int32_t*)(address + (uint64_t)offset);
""")
def read_integer(address: wp.uint64, offset: int) -> int:
    """Return an integer of 32 bits."""
    ...


@wp.func_native("""
const int32_t* from = (const int32_t*)address;
int32_t largest = from[0];
for (int32_t k = 1; k < count; ++k) largest = from[k] > largest ? from[k] : largest;
return largest;
""")
def largest_integer(address: wp.uint64, count: int) -> int:
    """Return the largest of some integers of 32 bits, at least one."""
    ...


@wp.func_native("""
*(int32_t*)(address + (uint64_t)offset) = value;
""")
def write_integer(address: wp.uint64, offset: int, value: int):
    """Write an integer of 32 bits."""
    ...


@wp.func_native("""
return *(const double*)(address + (uint64_t)offset);
""")
def read_number(address: wp.uint64, offset: int) -> wp.float64:
    """Return a number in double precision."""
    ...


@wp.func_native("""
*(double*)(address + (uint64_t)offset) = value;
""")
def write_number(address: wp.uint64, offset: int, value: wp.float64):
    """Write a number in double precision."""
    ...


# An error inside MuJoCo ends the process unless a handler leaves by a jump, as that of the Python bindings
# does. Our handler finds its jump target in thread-local storage. Warnings are counted in `mjData`, so the
# handler drops their texts. The jump is a compiler builtin that is known to work on this processor. On
# others, and if MuJoCo accepts no handler, an error ends the process with MuJoCo's message.
@wp.func_native("""
typedef void (*step_t)(void*, void*);
#if defined(__x86_64__)
if (set_handler == 0) {
    ((step_t)function)((void*)model, (void*)data);
    return 0;
}
struct Guard {
    static void** slots() { static void* store[2]; return store; }
    static void leave(const int32_t* message) {
        if (*message != 3) return;  // the level of the message: 3 is an error
        void** store = slots();
        typedef void* (*get_t)(unsigned);
        void** jump_buffer = (void**)((get_t)store[0])((unsigned)(uint64_t)store[1]);
        __builtin_longjmp(jump_buffer, 1);
    }
};
typedef void (*handler_t)(const int32_t*);
typedef handler_t (*set_handler_t)(handler_t);
typedef int32_t (*set_specific_t)(unsigned, void*);
void* jump_buffer[5];
void** store = Guard::slots();
store[0] = (void*)get_specific;
store[1] = (void*)key;
((set_specific_t)set_specific)((unsigned)key, (void*)jump_buffer);
handler_t before = ((set_handler_t)set_handler)(&Guard::leave);
volatile int32_t failed = 1;
if (__builtin_setjmp(jump_buffer) == 0) {
    ((step_t)function)((void*)model, (void*)data);
    failed = 0;
}
((set_handler_t)set_handler)(before);
return failed;
#else
((step_t)function)((void*)model, (void*)data);
return 0;
#endif
""")
def call_guarded(
    function: wp.uint64,
    model: wp.uint64,
    data: wp.uint64,
    set_handler: wp.uint64,
    get_specific: wp.uint64,
    set_specific: wp.uint64,
    key: wp.uint64,
) -> int:
    """Call a function of MuJoCo; return 1 if it ended with an error."""
    ...


@wp.func_native("""
return ((int32_t (*)(void*, void*, void*))function)((void*)model, (void*)data, (void*)contact);
""")
def add_contact(function: wp.uint64, model: wp.uint64, data: wp.uint64, contact: wp.uint64) -> int:
    """Pass a contact to MuJoCo; return 1 if there was no memory for it."""
    ...


@wp.func_native("""
double result[6];
((void (*)(void*, void*, int32_t, double*))function)((void*)model, (void*)data, contact, result);
return wp::vec_t<3, double>(result[0], result[1], result[2]);
""")
def contact_force(function: wp.uint64, model: wp.uint64, data: wp.uint64, contact: int) -> wp.vec3d:
    """Return the force of a contact [N], in its frame."""
    ...


# There are as many workers as threads, so a thread finds one at once; surplus threads wait.
@wp.func_native("""
for (;;) {
    for (int32_t k = 0; k < count; ++k) {
        int32_t worker = (preferred + k) % count;
        int32_t* lock = taken.data + worker;
        int32_t expected = 0;
        if (__atomic_load_n(lock, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(lock, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return worker;
    }
    ((int32_t (*)())yield_thread)();
}
""")
def acquire_worker(taken: wp.array(dtype=int), preferred: int, count: int, yield_thread: wp.uint64) -> int:
    """Acquire a free worker, the preferred one if possible, and return its index."""
    ...


@wp.func_native("""
__atomic_store_n(taken.data + worker, 0, __ATOMIC_RELEASE);
""")
def release_worker(taken: wp.array(dtype=int), worker: int):
    """Release a worker."""
    ...
