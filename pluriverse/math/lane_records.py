"""Moving records into lanes and back, as text of native code: 16 records of four numbers are 4 vectors of 16.

Eight lanes suit short lists: where vector units are 256 bits wide, two vectors of eight take as long as one
of sixteen, and 19 shapes three of them in place of four.

Left to itself, a compiler gathers one number of every record at a time, in an instruction that takes AMD's
processors some 80 operations. Here each record is loaded whole, and shuffles turn rows into columns.
"""

_RECORDS = """
    #ifdef __CUDA_ARCH__
    enum { LANES = 1 };
    typedef float lane_numbers[LANES];
    typedef int lane_integers[LANES];
    struct records {
        static void load4(const float* const (&rows)[1], lane_numbers* to, int first = 0) {
            for (int c = 0; c < 4; ++c) to[c][0] = rows[0][first + c];
        }
        static void load3(const float* const (&rows)[1], lane_numbers* to, int first = 0) {
            for (int c = 0; c < 3; ++c) to[c][0] = rows[0][first + c];
        }
        static void load4(const double* const (&rows)[1], lane_numbers* to, int first = 0) {
            for (int c = 0; c < 4; ++c) to[c][0] = (float)rows[0][first + c];
        }
        static void load3(const double* const (&rows)[1], lane_numbers* to, int first = 0) {
            for (int c = 0; c < 3; ++c) to[c][0] = (float)rows[0][first + c];
        }
        static void store4(const lane_numbers* from, float* const (&rows)[1], int first = 0) {
            for (int c = 0; c < 4; ++c) rows[0][first + c] = from[c][0];
        }
        static void store2(const lane_numbers* from, float* const (&rows)[1], int first = 0) {
            for (int c = 0; c < 2; ++c) rows[0][first + c] = from[c][0];
        }
        static unsigned bits(const lane_integers& is_set) { return is_set[0] != 0; }
    };
    #else
    enum { LANES = LANE_COUNT };
    typedef float lane_numbers[LANES];
    typedef int lane_integers[LANES];
    typedef float four_numbers __attribute__((ext_vector_type(4)));
    typedef double four_doubles __attribute__((ext_vector_type(4)));
    typedef float eight_numbers __attribute__((ext_vector_type(8)));
    typedef int all_numbers __attribute__((ext_vector_type(LANES)));
    typedef bool all_bits __attribute__((ext_vector_type(LANES)));
    typedef float all_lanes __attribute__((ext_vector_type(LANES)));
    struct records {
        // In each quarter of four vectors, rows become columns; done twice, nothing has changed.
        static inline void turn(all_lanes (&v)[4]) {
            const all_lanes a = __builtin_shufflevector(v[0], v[1], LOW_NUMBERS);
            const all_lanes b = __builtin_shufflevector(v[2], v[3], LOW_NUMBERS);
            const all_lanes c = __builtin_shufflevector(v[0], v[1], HIGH_NUMBERS);
            const all_lanes d = __builtin_shufflevector(v[2], v[3], HIGH_NUMBERS);
            v[0] = __builtin_shufflevector(a, b, LOWER_PAIRS);
            v[1] = __builtin_shufflevector(a, b, UPPER_PAIRS);
            v[2] = __builtin_shufflevector(c, d, LOWER_PAIRS);
            v[3] = __builtin_shufflevector(c, d, UPPER_PAIRS);
        }
        static inline void spread(const four_numbers (&row)[LANES], lane_numbers* to, int count) {
            all_lanes v[4];
            for (int k = 0; k < 4; ++k) v[k] = JOINED_ROWS;
            turn(v);
            for (int c = 0; c < count; ++c) __builtin_memcpy(to[c], &v[c], sizeof(v[c]));
        }
        static inline void load4(const float* const (&rows)[LANES], lane_numbers* to, int first = 0) {
            four_numbers row[LANES];
            for (int l = 0; l < LANES; ++l) __builtin_memcpy(&row[l], rows[l] + first, sizeof(row[l]));
            spread(row, to, 4);
        }
        static inline void load3(const float* const (&rows)[LANES], lane_numbers* to, int first = 0) {
            four_numbers row[LANES];
            for (int l = 0; l < LANES; ++l) {
                const float* from = rows[l] + first;
                row[l] = (four_numbers){from[0], from[1], from[2], 0.0f};
            }
            spread(row, to, 3);
        }
        static inline void load4(const double* const (&rows)[LANES], lane_numbers* to, int first = 0) {
            four_numbers row[LANES];
            for (int l = 0; l < LANES; ++l) {
                four_doubles from;
                __builtin_memcpy(&from, rows[l] + first, sizeof(from));
                row[l] = __builtin_convertvector(from, four_numbers);
            }
            spread(row, to, 4);
        }
        static inline void load3(const double* const (&rows)[LANES], lane_numbers* to, int first = 0) {
            four_numbers row[LANES];
            for (int l = 0; l < LANES; ++l) {
                const double* from = rows[l] + first;
                row[l] = (four_numbers){(float)from[0], (float)from[1], (float)from[2], 0.0f};
            }
            spread(row, to, 3);
        }
        static inline void store4(const lane_numbers* from, float* const (&rows)[LANES], int first = 0) {
            all_lanes v[4];
            for (int c = 0; c < 4; ++c) __builtin_memcpy(&v[c], from[c], sizeof(v[c]));
            turn(v);
            for (int k = 0; k < 4; ++k) {
                const four_numbers row[LANES / 4] = { QUARTERS };
                for (int q = 0; q < LANES / 4; ++q) {
                    __builtin_memcpy(rows[4 * q + k] + first, &row[q], sizeof(row[q]));
                }
            }
        }
        static inline void store2(const lane_numbers* from, float* const (&rows)[LANES], int first = 0) {
            for (int l = 0; l < LANES; ++l)
                for (int c = 0; c < 2; ++c) rows[l][first + c] = from[c][l];
        }
        static inline unsigned bits(const lane_integers& is_set) {
            all_numbers numbers;
            __builtin_memcpy(&numbers, is_set, sizeof(numbers));
            const all_bits found = __builtin_convertvector(numbers != 0, all_bits);
            BITS_TYPE result;
            __builtin_memcpy(&result, &found, sizeof(result));
            return result;
        }
    };
    #endif
"""


def lane_records(count: int) -> str:
    """Return text that declares, inside of a function, `LANES` and `struct records`.

    `to` and `from` are arrays [column][lane].

    - `records::load4(rows, to, first)` and `load3`: four or three numbers, from the one numbered `first` on,
      of the records at the addresses `rows`, rounded to float if they are doubles. Nothing else is read.
    - `records::store4(from, rows, first)` and `store2`: writes as many.
    - `records::bits(is_set)`: the lanes in which an integer is not 0, as bits of a word.

    Args:
        count: Lanes on a CPU, 8 or 16. On a GPU there is one.
    """

    def quarters(lanes: tuple[int, ...], vectors: tuple[int, ...]) -> str:
        # The same lanes of two vectors in each quarter of four.
        return ", ".join(
            str(lane + first + count * vector)
            for first in range(0, count, 4)
            for lane, vector in zip(lanes, vectors, strict=True)
        )

    eights = [
        f"__builtin_shufflevector(row[{k} + k], row[{k + 4} + k], 0, 1, 2, 3, 4, 5, 6, 7)"
        for k in range(0, count, 8)
    ]
    all_lanes = ", ".join(map(str, range(count)))
    joined = eights[0] if count == 8 else f"__builtin_shufflevector({', '.join(eights)}, {all_lanes})"
    rows = (
        f"__builtin_shufflevector(v[k], v[k], {k}, {k + 1}, {k + 2}, {k + 3})" for k in range(0, count, 4)
    )
    text = _RECORDS
    for name, value in (
        ("LANE_COUNT", str(count)),
        ("LOW_NUMBERS", quarters((0, 0, 1, 1), (0, 1, 0, 1))),
        ("HIGH_NUMBERS", quarters((2, 2, 3, 3), (0, 1, 0, 1))),
        ("LOWER_PAIRS", quarters((0, 1, 0, 1), (0, 0, 1, 1))),
        ("UPPER_PAIRS", quarters((2, 3, 2, 3), (0, 0, 1, 1))),
        ("JOINED_ROWS", joined),
        ("QUARTERS", ", ".join(rows)),
        ("BITS_TYPE", {8: "unsigned char", 16: "unsigned short"}[count]),
    ):
        text = text.replace(name, value)
    return text


LANE_RECORDS = lane_records(16)
"""Text that declares 16 lanes."""
