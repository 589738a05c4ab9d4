"""Impulses and velocities of a few contacts, in native code: the law of some is put in the place of others.

Of contacts with impulses p and velocities u = u0 + W p, some are held: u + D p = g for these. With x the
impulses of the others, and 0 for those that are held, and y the velocities of the others, and the impulses
of those that are held,

    y = b + A x,

where A and b follow from W and u0 by a principal pivot for each held contact ([Cottle2009] section 2.3): its
three rows and columns exchange what is given for what is found. Exchanged again, it is as before. A is
symmetric but for signs: held components and others differ in those.

Rows are in the order of contacts. Columns, b and other vectors have as many contacts in a vector as it has
numbers, n: that of axis k of contact c is number c % n of vector 3 (c / n) + k.
"""

CONTACTS_MAX = 16
"""Most contacts that the text takes."""

EXCHANGE = """
    constexpr int LANES = WIDTH * ((CONTACTS + WIDTH - 1) / WIDTH);
    // The compiler knows it where there is one.
    const int groups = LANES == WIDTH ? 1 : (count + WIDTH - 1) / WIDTH, wide = 3 * WIDTH * groups;
    auto lane = [](const int c) { return 3 * WIDTH * (c / WIDTH) + c % WIDTH; };
    alignas(64) V b[3 * LANES], sign[LANES];  // sign: -1 of contacts that are held
    alignas(64) const V numbers[8] = {V(0), V(1), V(2), V(3), V(4), V(5), V(6), V(7)};
    auto begin_exchange = [&](const V* W, const V* u0) {
        const int pad = (3 * count + 7) & ~7;
        for (int r = 0; r < 3 * count; ++r) {
            const V* row = W + r * pad;
            for (int j = 0; j < wide; j += 3 * WIDTH) unweave(row + j, pad - j, A + r * wide + j);
        }
        for (int i = 0; i < WIDTH * groups; ++i) sign[i] = V(1);
        for (int i = 0; i < wide; ++i) b[i] = V(0);
        for (int c = 0; c < count; ++c) {
            for (int k = 0; k < 3; ++k) b[lane(c) + WIDTH * k] = u0[3 * c + k];
        }
    };
    // Hold a contact for inward = 1, release it for -1, with D = (rt, rt, rn) and g = (0, 0, wish).
    auto exchange = [&](const int c, const V inward, const V rt, const V rn, const V wish) -> bool {
        const int home = c / WIDTH, at = lane(c);
        V* r0 = A + 3 * c * wide;
        V* r1 = r0 + wide;
        V* r2 = r1 + wide;
        if (inward > V(0)) {
            r0[at] += rt;
            r1[at + WIDTH] += rt;
            r2[at + 2 * WIDTH] += rn;
            b[at + 2 * WIDTH] -= wish;
        }
        // The inverse Q of the three by three numbers on the diagonal, by L D L^T.
        const V d00 = r0[at], d10 = r1[at], d20 = r2[at], d11 = r1[at + WIDTH], d21 = r2[at + WIDTH];
        if (!(d00 > V(0))) return false;
        const V i0 = V(1) / d00;
        const V l10 = d10 * i0, l20 = d20 * i0;
        const V e11 = d11 - l10 * d10, e21 = d21 - l20 * d10;
        if (!(e11 > V(0))) return false;
        const V i1 = V(1) / e11;
        const V l21 = e21 * i1;
        const V e22 = r2[at + 2 * WIDTH] - l20 * d20 - l21 * e21;
        if (!(e22 > V(0))) return false;
        const V q22 = V(1) / e22;
        const V m20 = l10 * l21 - l20;
        const V q21 = -l21 * q22, q20 = m20 * q22;
        const V q11 = i1 - l21 * q21, q10 = -l10 * i1 - l21 * q20;
        const V q00 = i0 + l10 * l10 * i1 + m20 * q20;
        const V b0 = b[at], b1 = b[at + WIDTH], b2 = b[at + 2 * WIDTH];
        const V z0 = q00 * b0 + q10 * b1 + q20 * b2;
        const V z1 = q10 * b0 + q11 * b1 + q21 * b2;
        const V z2 = q20 * b0 + q21 * b1 + q22 * b2;
        // The rows of the contact become -Q times what they were, and Q on the diagonal.
        alignas(64) V column[9 * LANES];  // its columns, which follow from the rows
        const VW own = fill(V(c % WIDTH));
        const MW here = fill(V(0.5)) > (load(numbers) - own) * (load(numbers) - own);
        const MW nowhere = load(numbers) > fill(V(WIDTH));
        for (int g = 0; g < groups; ++g) {
            const VW equal = load(sign + WIDTH * g) * inward;
            for (int k = 0; k < 3; ++k) {
                const int j = 3 * WIDTH * g + WIDTH * k;
                const VW x0 = load(r0 + j), x1 = load(r1 + j), x2 = load(r2 + j);
                const VW c0 = equal * x0, c1 = equal * x1, c2 = equal * x2;
                store(column + 3 * j, c0);
                store(column + 3 * j + WIDTH, c1);
                store(column + 3 * j + 2 * WIDTH, c2);
                store(b + j, load(b + j) - (c0 * z0 + c1 * z1 + c2 * z2));
                store(r0 + j, -(x0 * q00 + x1 * q10 + x2 * q20));
                store(r1 + j, -(x0 * q10 + x1 * q11 + x2 * q21));
                store(r2 + j, -(x0 * q20 + x1 * q21 + x2 * q22));
            }
        }
        r0[at] = q00;
        r1[at + WIDTH] = q11;
        r2[at + 2 * WIDTH] = q22;
        r0[at + WIDTH] = r1[at] = q10;
        r0[at + 2 * WIDTH] = r2[at] = q20;
        r1[at + 2 * WIDTH] = r2[at + WIDTH] = q21;
        b[at] = -z0;
        b[at + WIDTH] = -z1;
        b[at + 2 * WIDTH] = -z2;
        for (int g = 0; g < groups; ++g) {
            const int j = 3 * WIDTH * g;
            const MW gone = g == home ? here : nowhere;
            const VW x0 = load(r0 + j), y0 = load(r0 + j + WIDTH), w0 = load(r0 + j + 2 * WIDTH);
            const VW x1 = load(r1 + j), y1 = load(r1 + j + WIDTH), w1 = load(r1 + j + 2 * WIDTH);
            const VW x2 = load(r2 + j), y2 = load(r2 + j + WIDTH), w2 = load(r2 + j + 2 * WIDTH);
            for (int i = 0; i < count; ++i) {
                if (i == c) continue;
                const V* of = column + 9 * WIDTH * (i / WIDTH) + i % WIDTH;
                V* row = A + 3 * i * wide + j;
                for (int k = 0; k < 3; ++k, row += wide, of += 3 * WIDTH) {
                    const V c0 = of[0], c1 = of[WIDTH], c2 = of[2 * WIDTH];
                    const VW x = select(gone, fill(V(0)), load(row));
                    const VW y = select(gone, fill(V(0)), load(row + WIDTH));
                    const VW w = select(gone, fill(V(0)), load(row + 2 * WIDTH));
                    store(row, x + x0 * c0 + x1 * c1 + x2 * c2);
                    store(row + WIDTH, y + y0 * c0 + y1 * c1 + y2 * c2);
                    store(row + 2 * WIDTH, w + w0 * c0 + w1 * c1 + w2 * c2);
                }
            }
        }
        sign[c] = -inward;
        if (inward < V(0)) {
            r0[at] -= rt;
            r1[at + WIDTH] -= rt;
            r2[at + 2 * WIDTH] -= rn;
            b[at + 2 * WIDTH] += wish;
        }
        return true;
    };
"""
"""Text behind that of `numbers_at_once`, for n = `WIDTH` of at most eight numbers, and `unweave_text`, about
`count` contacts of at most `CONTACTS` in the memory `A`, of 9 count n ceil(count / n) numbers; declares

- `begin_exchange(W, u0)`: no contact is held. Rows of W are as many numbers apart as it has columns, rounded
  up to a multiple of 8, with zeros behind the last.
- `exchange(c, inward, rt, rn, wish)`: hold contact c for `inward` = 1, release it for -1. Returns false where
  W + D of the held contacts is not positive definite.
"""

BALANCE = """
    // Contacts that slide: p_t = n m + e x with the normal impulse n, m = mu t, and e across t, or 0.
    alignas(64) V m0[LANES], m1[LANES], m2[LANES], e0[LANES], e1[LANES];
    alignas(64) V across[LANES];  // D_0
    alignas(64) V normal[LANES], turn[LANES];  // n and x
    auto balance = [&](const unsigned slides, const unsigned turns, const V* rn, const V* wish) -> bool {
        V* S = A + 3 * count * wide;
        // Columns for turns come behind the others, where there are any.
        const int width = (turns ? 2 : 1) * WIDTH * groups;
        V* row[2 * CONTACTS];
        V rest[2 * CONTACTS];
        int column[2 * CONTACTS];
        int n = 0;
        for (int i = 0; i < WIDTH * groups; ++i) normal[i] = turn[i] = V(0);
        for (int c = 0; c < count; ++c) {
            if (!(slides >> c & 1)) continue;
            for (int is_turn = 0; is_turn <= (turns >> c & 1 ? 1 : 0); ++is_turn) {
                const V* w0 = A + 3 * c * wide;
                const V* w1 = w0 + wide;
                const V* w2 = w1 + wide;
                const V f0 = e0[c], f1 = e1[c];
                V* s = S + n * width;
                for (int g = 0; g < groups; ++g) {
                    VW y[3];
                    for (int k = 0; k < 3; ++k) {
                        const int j = 3 * WIDTH * g + WIDTH * k;
                        y[k] = is_turn ? load(w0 + j) * f0 + load(w1 + j) * f1 : load(w2 + j);
                    }
                    const int j = WIDTH * g;
                    store(s + j, load(m0 + j) * y[0] + load(m1 + j) * y[1] + load(m2 + j) * y[2]);
                    if (turns) store(s + WIDTH * groups + j, load(e0 + j) * y[0] + load(e1 + j) * y[1]);
                }
                const V* rate = b + lane(c);
                column[n] = is_turn ? WIDTH * groups + c : c;
                rest[n] = is_turn ? -(f0 * rate[0] + f1 * rate[WIDTH]) : wish[c] - rate[2 * WIDTH];
                s[column[n]] += is_turn ? across[c] : rn[c];
                row[n] = s;
                ++n;
            }
        }
        // Friction makes this unsymmetric: elimination with pivots, in all rows.
        V found[2 * CONTACTS];
        for (int k = 0; k < n; ++k) {
            const int at = column[k];
            int pivot = k;
            V largest = V(0);
            for (int i = k; i < n; ++i) {
                const V size = row[i][at] < V(0) ? -row[i][at] : row[i][at];
                if (size > largest) {
                    largest = size;
                    pivot = i;
                }
            }
            if (!(largest > V(0))) return false;
            V* taken = row[pivot];
            const V value = rest[pivot];
            row[pivot] = row[k];
            rest[pivot] = rest[k];
            row[k] = taken;
            rest[k] = value;
            const V inverse = V(1) / taken[at];
            found[k] = inverse;
            for (int i = 0; i < n; ++i) {
                const V share = row[i][at] * inverse;
                if (i == k || share == V(0)) continue;
                for (int j = 0; j < width; j += WIDTH) {
                    store(row[i] + j, load(row[i] + j) - load(taken + j) * share);
                }
                rest[i] -= value * share;
            }
        }
        for (int k = 0; k < n; ++k) {
            const int at = column[k];
            (at < WIDTH * groups ? normal : turn - WIDTH * groups)[at] = rest[k] * found[k];
        }
        return true;
    };
    // y, for the impulses x of contacts that are not held, three numbers of eight contacts each.
    auto respond = [&](const unsigned others, const V* x, V* y) {
        VW sum[3 * LANES / WIDTH];
        for (int j = 0; j < 3 * groups; ++j) sum[j] = fill(V(0));
        for (int c = 0; c < count; ++c) {
            if (!(others >> c & 1)) continue;
            for (int k = 0; k < 3; ++k) {
                const V s = x[lane(c) + WIDTH * k];
                const V* a = A + (3 * c + k) * wide;
                for (int j = 0; j < 3 * groups; ++j) sum[j] = sum[j] + load(a + WIDTH * j) * s;
            }
        }
        for (int j = 0; j < 3 * groups; ++j) {
            store(y + WIDTH * j, load(b + WIDTH * j) + load(sign + j / 3 * WIDTH) * sum[j]);
        }
    };
"""
"""Text behind `EXCHANGE`, where the memory `A` holds 4 count n ceil(count / n) numbers more; declares

- `balance(slides, turns, rn, wish)`: finds n and x of the contacts of the bits `slides`, none of which is
  held: u_n + rn n = wish, and if in `turns`, e . u_t + D_0 x = 0. Numbers of others are to be 0 in m and e.
  Returns false if the matrix of these equations is singular.
- `respond(others, x, y)`: y = b + A x, where only contacts of the bits `others` have x.
"""
