"""Moving records into lanes and back, as text of native code: 16 records of four numbers are 4 vectors of 16.

Left to itself, a compiler gathers one number of every record at a time, in an instruction that takes AMD's
processors some 80 operations. Here each record is loaded whole, and shuffles turn rows into columns.
"""

LANE_RECORDS = """
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
    enum { LANES = 16 };
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
            #define PLURIVERSE_LOW 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
            #define PLURIVERSE_HIGH 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
            #define PLURIVERSE_LOWER 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
            #define PLURIVERSE_UPPER 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
            const all_lanes a = __builtin_shufflevector(v[0], v[1], PLURIVERSE_LOW);
            const all_lanes b = __builtin_shufflevector(v[2], v[3], PLURIVERSE_LOW);
            const all_lanes c = __builtin_shufflevector(v[0], v[1], PLURIVERSE_HIGH);
            const all_lanes d = __builtin_shufflevector(v[2], v[3], PLURIVERSE_HIGH);
            v[0] = __builtin_shufflevector(a, b, PLURIVERSE_LOWER);
            v[1] = __builtin_shufflevector(a, b, PLURIVERSE_UPPER);
            v[2] = __builtin_shufflevector(c, d, PLURIVERSE_LOWER);
            v[3] = __builtin_shufflevector(c, d, PLURIVERSE_UPPER);
            #undef PLURIVERSE_LOW
            #undef PLURIVERSE_HIGH
            #undef PLURIVERSE_LOWER
            #undef PLURIVERSE_UPPER
        }
        static inline void spread(const four_numbers (&row)[16], lane_numbers* to, int count) {
            all_lanes v[4];
            for (int k = 0; k < 4; ++k) {
                const eight_numbers low = __builtin_shufflevector(row[k], row[4 + k], 0, 1, 2, 3, 4, 5, 6, 7);
                const eight_numbers high =
                    __builtin_shufflevector(row[8 + k], row[12 + k], 0, 1, 2, 3, 4, 5, 6, 7);
                v[k] = __builtin_shufflevector(
                    low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            }
            turn(v);
            for (int c = 0; c < count; ++c) __builtin_memcpy(to[c], &v[c], sizeof(v[c]));
        }
        static inline void load4(const float* const (&rows)[16], lane_numbers* to, int first = 0) {
            four_numbers row[16];
            for (int l = 0; l < 16; ++l) __builtin_memcpy(&row[l], rows[l] + first, sizeof(row[l]));
            spread(row, to, 4);
        }
        static inline void load3(const float* const (&rows)[16], lane_numbers* to, int first = 0) {
            four_numbers row[16];
            for (int l = 0; l < 16; ++l) {
                const float* from = rows[l] + first;
                row[l] = (four_numbers){from[0], from[1], from[2], 0.0f};
            }
            spread(row, to, 3);
        }
        static inline void load4(const double* const (&rows)[16], lane_numbers* to, int first = 0) {
            four_numbers row[16];
            for (int l = 0; l < 16; ++l) {
                four_doubles from;
                __builtin_memcpy(&from, rows[l] + first, sizeof(from));
                row[l] = __builtin_convertvector(from, four_numbers);
            }
            spread(row, to, 4);
        }
        static inline void load3(const double* const (&rows)[16], lane_numbers* to, int first = 0) {
            four_numbers row[16];
            for (int l = 0; l < 16; ++l) {
                const double* from = rows[l] + first;
                row[l] = (four_numbers){(float)from[0], (float)from[1], (float)from[2], 0.0f};
            }
            spread(row, to, 3);
        }
        static inline void store4(const lane_numbers* from, float* const (&rows)[16], int first = 0) {
            all_lanes v[4];
            for (int c = 0; c < 4; ++c) __builtin_memcpy(&v[c], from[c], sizeof(v[c]));
            turn(v);
            for (int k = 0; k < 4; ++k) {
                const four_numbers row[4] = {
                    __builtin_shufflevector(v[k], v[k], 0, 1, 2, 3),
                    __builtin_shufflevector(v[k], v[k], 4, 5, 6, 7),
                    __builtin_shufflevector(v[k], v[k], 8, 9, 10, 11),
                    __builtin_shufflevector(v[k], v[k], 12, 13, 14, 15)};
                for (int q = 0; q < 4; ++q) {
                    __builtin_memcpy(rows[4 * q + k] + first, &row[q], sizeof(row[q]));
                }
            }
        }
        static inline void store2(const lane_numbers* from, float* const (&rows)[16], int first = 0) {
            for (int l = 0; l < 16; ++l)
                for (int c = 0; c < 2; ++c) rows[l][first + c] = from[c][l];
        }
        static inline unsigned bits(const lane_integers& is_set) {
            all_numbers numbers;
            __builtin_memcpy(&numbers, is_set, sizeof(numbers));
            const all_bits found = __builtin_convertvector(numbers != 0, all_bits);
            unsigned short result;
            __builtin_memcpy(&result, &found, sizeof(result));
            return result;
        }
    };
    #endif
"""
"""Declares, inside of a function, `LANES` and `struct records`. `to` and `from` are arrays [column][lane].

- `records::load4(rows, to, first)` and `load3`: four or three numbers, from the one numbered `first` on, of
  the records at the addresses `rows`, rounded to float if they are doubles. Nothing else is read.
- `records::store4(from, rows, first)` and `store2`: writes as many.
- `records::bits(is_set)`: the lanes in which an integer is not 0, as bits of a word.

On a CPU there are 16 lanes, on a GPU one.
"""
