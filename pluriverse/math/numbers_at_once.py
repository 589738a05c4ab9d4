"""Several numbers, which a CPU computes with at once: types for native code about one world.

A loop over a dozen numbers is not vectorized by the compiler, or in halves of a vector. So such code names
its vectors. On a GPU, where a thread computes one number at a time, the same names are loops.
"""

from string import Template

_TYPES = """
    constexpr int WIDTH = $width;
#ifdef __clang__
    typedef V VW __attribute__((ext_vector_type(WIDTH), aligned(sizeof(V))));
    typedef decltype(VW() < VW()) MW;
    auto load = [](const V* from) { return *(const VW*)from; };
    auto store = [](V* to, const VW x) { *(VW*)to = x; };
    auto fill = [](const V x) { return (VW)(x); };
    auto select = [](const MW which, const VW x, const VW y) { return which ? x : y; };
    auto root = [](const VW x) { return __builtin_elementwise_sqrt(x); };
    auto any = [](const VW x) { return __builtin_reduce_or(x != (VW)(V(0))) != 0; };
    auto bits = [](const MW which) {
        unsigned found = 0;
        for (int i = 0; i < WIDTH; ++i) found |= unsigned(which[i] != 0) << i;
        return found;
    };
#else
    struct MW {
        bool e[WIDTH];
        MW operator&(MW x) const { for (int i = 0; i < WIDTH; ++i) x.e[i] = e[i] && x.e[i]; return x; }
    };
    struct VW {
        V e[WIDTH];
        V operator[](int i) const { return e[i]; }
        VW operator-() const { VW y; for (int i = 0; i < WIDTH; ++i) y.e[i] = -e[i]; return y; }
        VW operator+(VW x) const { for (int i = 0; i < WIDTH; ++i) x.e[i] = e[i] + x.e[i]; return x; }
        VW operator-(VW x) const { for (int i = 0; i < WIDTH; ++i) x.e[i] = e[i] - x.e[i]; return x; }
        VW operator*(VW x) const { for (int i = 0; i < WIDTH; ++i) x.e[i] = e[i] * x.e[i]; return x; }
        VW operator/(VW x) const { for (int i = 0; i < WIDTH; ++i) x.e[i] = e[i] / x.e[i]; return x; }
        VW operator*(const V x) const { VW y; for (int i = 0; i < WIDTH; ++i) y.e[i] = e[i] * x; return y; }
        MW operator>(VW x) const { MW y; for (int i = 0; i < WIDTH; ++i) y.e[i] = e[i] > x.e[i]; return y; }
    };
    auto load = [](const V* from) { VW x; for (int i = 0; i < WIDTH; ++i) x.e[i] = from[i]; return x; };
    auto store = [](V* to, const VW& x) { for (int i = 0; i < WIDTH; ++i) to[i] = x.e[i]; };
    auto fill = [](const V x) { VW y; for (int i = 0; i < WIDTH; ++i) y.e[i] = x; return y; };
    auto select = [](const MW& which, VW x, const VW& y) {
        for (int i = 0; i < WIDTH; ++i) x.e[i] = which.e[i] ? x.e[i] : y.e[i];
        return x;
    };
    auto root = [](VW x) { for (int i = 0; i < WIDTH; ++i) x.e[i] = sqrt(x.e[i]); return x; };
    auto any = [](const VW& x) {
        bool found = false;
        for (int i = 0; i < WIDTH; ++i) found |= x.e[i] != V(0);
        return found;
    };
    auto bits = [](const MW& which) {
        unsigned found = 0;
        for (int i = 0; i < WIDTH; ++i) found |= unsigned(which.e[i]) << i;
        return found;
    };
#endif
"""

_UNWEAVE = """
    // As many triples of numbers as a vector has numbers, by component; of `size` numbers, the rest being 0.
    auto unweave = [&](const V* from, const int size, V* to) {
#ifdef __clang__
        const VW zero = fill(V(0)), a = load(from);
        const VW b = size > WIDTH ? load(from + WIDTH) : zero;
        const VW c = size > 2 * WIDTH ? load(from + 2 * WIDTH) : zero;
        $shuffles
#else
        for (int i = 0; i < 3 * WIDTH; ++i) to[i % 3 * WIDTH + i / 3] = i < size ? from[i] : V(0);
#endif
    };
"""


def numbers_at_once(width: int) -> str:
    """Return text of native code that knows the scalar type `V`, for vectors of `width` numbers.

    It declares

    - `WIDTH`, `VW`, so many numbers, with `+`, `-`, `*` by each other or a number, `/` and `>`, and `MW`, as
      many answers;
    - `load(from)`, `store(to, x)`, `fill(number)`, `root(x)`, and `any(x)`: whether one is not 0;
    - `select(which, x, y)`: of x where `which` is true, else of y; `bits(which)`: the same as bits of an
      integer.
    """
    return Template(_TYPES).substitute(width=width)


def unweave_text(width: int) -> str:
    """Return text that follows it; `unweave(from, size, to)`: `width` triples by component.

    Numbers from `size` on, which is a multiple of `width`, are 0.
    """
    shuffles = []
    for axis in range(3):
        # Of the numbers of a and b, and then of these and c.
        wanted = [3 * triple + axis for triple in range(width)]
        near = [index if index < 2 * width else 0 for index in wanted]
        far = [k if index < 2 * width else index - width for k, index in enumerate(wanted)]
        first = f"const VW r{axis} = __builtin_shufflevector(a, b, {', '.join(map(str, near))});"
        second = f"__builtin_shufflevector(r{axis}, c, {', '.join(map(str, far))})"
        shuffles.append(f"{first}\n        store(to + {axis} * WIDTH, {second});")
    return Template(_UNWEAVE).substitute(shuffles="\n        ".join(shuffles))


EIGHT_NUMBERS = numbers_at_once(8) + "    typedef VW V8;\n    typedef MW M8;\n"
"""The same for eight numbers, `V8` and `M8`."""
