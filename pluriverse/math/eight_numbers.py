"""Eight numbers, which a CPU computes with at once: types for native code about one world.

A loop over a dozen numbers is not vectorized by the compiler, or in halves of a vector. So such code names
its vectors. On a GPU, where a thread computes one number at a time, the same names are loops.
"""

_TYPES = """
#ifdef __clang__
    typedef V V8 __attribute__((ext_vector_type(8), aligned(sizeof(V))));
    typedef decltype(V8() < V8()) M8;
    auto load = [](const V* from) { return *(const V8*)from; };
    auto store = [](V* to, const V8 x) { *(V8*)to = x; };
    auto fill = [](const V x) { return (V8)(x); };
    auto select = [](const M8 which, const V8 x, const V8 y) { return which ? x : y; };
    auto root = [](const V8 x) { return __builtin_elementwise_sqrt(x); };
    auto any = [](const V8 x) { return __builtin_reduce_or(x != (V8)(V(0))) != 0; };
    auto bits = [](const M8 which) {
        unsigned found = 0;
        for (int i = 0; i < 8; ++i) found |= unsigned(which[i] != 0) << i;
        return found;
    };
#else
    struct M8 {
        bool e[8];
        M8 operator&(M8 x) const { for (int i = 0; i < 8; ++i) x.e[i] = e[i] && x.e[i]; return x; }
    };
    struct V8 {
        V e[8];
        V operator[](int i) const { return e[i]; }
        V8 operator-() const { V8 y; for (int i = 0; i < 8; ++i) y.e[i] = -e[i]; return y; }
        V8 operator+(V8 x) const { for (int i = 0; i < 8; ++i) x.e[i] = e[i] + x.e[i]; return x; }
        V8 operator-(V8 x) const { for (int i = 0; i < 8; ++i) x.e[i] = e[i] - x.e[i]; return x; }
        V8 operator*(V8 x) const { for (int i = 0; i < 8; ++i) x.e[i] = e[i] * x.e[i]; return x; }
        V8 operator/(V8 x) const { for (int i = 0; i < 8; ++i) x.e[i] = e[i] / x.e[i]; return x; }
        V8 operator*(const V x) const { V8 y; for (int i = 0; i < 8; ++i) y.e[i] = e[i] * x; return y; }
        M8 operator>(V8 x) const { M8 y; for (int i = 0; i < 8; ++i) y.e[i] = e[i] > x.e[i]; return y; }
    };
    auto load = [](const V* from) { V8 x; for (int i = 0; i < 8; ++i) x.e[i] = from[i]; return x; };
    auto store = [](V* to, const V8& x) { for (int i = 0; i < 8; ++i) to[i] = x.e[i]; };
    auto fill = [](const V x) { V8 y; for (int i = 0; i < 8; ++i) y.e[i] = x; return y; };
    auto select = [](const M8& which, V8 x, const V8& y) {
        for (int i = 0; i < 8; ++i) x.e[i] = which.e[i] ? x.e[i] : y.e[i];
        return x;
    };
    auto root = [](V8 x) { for (int i = 0; i < 8; ++i) x.e[i] = sqrt(x.e[i]); return x; };
    auto any = [](const V8& x) {
        bool found = false;
        for (int i = 0; i < 8; ++i) found |= x.e[i] != V(0);
        return found;
    };
    auto bits = [](const M8& which) {
        unsigned found = 0;
        for (int i = 0; i < 8; ++i) found |= unsigned(which.e[i]) << i;
        return found;
    };
#endif
"""

_UNWEAVE = """
    // Eight triples of numbers, of which the first `size` numbers are given, by component; others are 0.
    auto unweave = [&](const V* from, const int size, V* to) {
#ifdef __clang__
        const V8 a = load(from);
        const V8 b = size > 8 ? load(from + 8) : fill(V(0)), c = size > 16 ? load(from + 16) : fill(V(0));
        const V8 x = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 0, 0);
        const V8 y = __builtin_shufflevector(a, b, 1, 4, 7, 10, 13, 0, 0, 0);
        const V8 z = __builtin_shufflevector(a, b, 2, 5, 8, 11, 14, 0, 0, 0);
        store(to, __builtin_shufflevector(x, c, 0, 1, 2, 3, 4, 5, 10, 13));
        store(to + 8, __builtin_shufflevector(y, c, 0, 1, 2, 3, 4, 8, 11, 14));
        store(to + 16, __builtin_shufflevector(z, c, 0, 1, 2, 3, 4, 9, 12, 15));
#else
        for (int i = 0; i < 24; ++i) to[i % 3 * 8 + i / 3] = i < size ? from[i] : V(0);
#endif
    };
"""

EIGHT_NUMBERS = _TYPES
"""Text of native code that knows the scalar type `V`; declares

- `V8`, eight numbers, with `+`, `-`, `*` by each other or a number, `/` and `>`, and `M8`, eight answers;
- `load(from)`, `store(to, x)`, `fill(number)`, `root(x)`, and `any(x)`: whether one is not 0;
- `select(which, x, y)`: of x where `which` is true, else of y; `bits(which)`: the same as bits of an integer.
"""

UNWEAVE = _UNWEAVE
"""Text that follows it; `unweave(from, size, to)`: eight triples by component, the rest of `size` multiples
of eight numbers being 0."""
