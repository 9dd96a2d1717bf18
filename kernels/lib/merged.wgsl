// merged - attention's answer from the shares of attention_split. Needs p with head_dim and n_split, and the buffer partial; rank4(): vec4s of
// z = A o that a share has behind it, see lib/attend.
//!include lib/four.wgsl
//!include lib/turns.wgsl

var<private> z_merged : vec4<f32>; // of the head that the thread has columns of: vec4 (its sixteens before them) of z, where that is one

// What a thread reads of a share.
struct Share {
    end : vec4<f32>, // top and total
    o : Four,
    z : vec4<f32>,
}

// All of them so far, scaled by the largest top.
struct Merging {
    o : Four,
    z : vec4<f32>,
    top : f32,
    total : f32,
}

// Share i; past the last one of that, where it counts for nothing.
fn share_at(i : u32, at : u32, col : u32, z_col : u32, stride : u32) -> Share {
    let first = min(i, p.n_split - 1u) * stride;
    let from_col = col + first;
    var s = Share(partial[at + first + p.head_dim / 4u],
                  Four(partial[from_col], partial[from_col + 1u], partial[from_col + 2u], partial[from_col + 3u]), vec4<f32>());
    if (rank4() > 0u) {
        s.z = partial[at + first + z_col];
    }
    if (i >= p.n_split) {
        s.end.y = 0.0;
    }
    return s;
}

fn add_share(m : Merging, s : Share) -> Merging {
    if (s.end.y <= 0.0) { // a share without positions has no o
        return m;
    }
    let higher = max(m.top, s.end.x);
    let before = exp(m.top - higher);
    let now = exp(s.end.x - higher);
    return Merging(Four(before * m.o.a + now * s.o.a, before * m.o.b + now * s.o.b, before * m.o.c + now * s.o.c, before * m.o.d + now * s.o.d),
                   before * m.z + now * s.z, higher, before * m.total + now * s.end.y);
}

// Columns 4i .. 4i + 15 of all heads. The shares are added up one after the other, each is read once, and four of them are on their way at a time.
fn merged(i : u32) -> Four {
    let n4 = p.head_dim / 4u;
    let stride = n4 + 1u + rank4();
    let at = i / n4 * p.n_split * stride;
    let col = at + i % n4;
    let z_col = n4 + 1u + min(i % n4 / 4u, max(rank4(), 1u) - 1u);
    var m = Merging(Four(), vec4<f32>(), -3.0e38, 0.0);
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let first = 4u * turn;
        if (first >= p.n_split) {
            break;
        }
        let s0 = share_at(first, at, col, z_col, stride);
        let s1 = share_at(first + 1u, at, col, z_col, stride);
        let s2 = share_at(first + 2u, at, col, z_col, stride);
        let s3 = share_at(first + 3u, at, col, z_col, stride);
        m = add_share(add_share(add_share(add_share(m, s0), s1), s2), s3);
    }
    z_merged = m.z / m.total;
    return Four(m.o.a / m.total, m.o.b / m.total, m.o.c / m.total, m.o.d / m.total);
}
