// led_rows - the adapters of a matrix whose rows all are here: as lib/lora, of B from b_at on, behind which its scales lie. Needs z_of(k): number
// k of z = A x, for all matrices; the buffer b.

// Which rows of B: those of W, of so many; no more than R are read.
struct LedRows {
    rows : vec4<u32>,
    n_rows : u32,
    rank : u32,
    b_at : u32,
    z_at : u32,
}

// Column k of B for these rows, and its scale.
struct LedColumn {
    b : vec4<f32>,
    scale : f32,
}

fn led_column(led : LedRows, k : u32) -> LedColumn {
    let at = led.rows + vec4<u32>(led.b_at + k * led.n_rows);
    var c = LedColumn(vec4<f32>(b[at.x], 0.0, 0.0, 0.0), b[led.b_at + led.rank * led.n_rows + k]);
    if (R > 1u) {
        c.b.y = b[at.y];
    }
    if (R > 2u) {
        c.b.z = b[at.z];
        c.b.w = b[at.w];
    }
    return c;
}

// A lane's first column, which can be on its way while W is multiplied.
fn begin_led(led : LedRows, lane : u32) -> LedColumn {
    if (lane >= led.rank) {
        return LedColumn();
    }
    return led_column(led, lane);
}

// What they add to the rows, this lane's part.
fn led_rows(begun : LedColumn, led : LedRows, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    if (lane < led.rank) {
        sum = z_of(led.z_at + lane) * begun.scale * begun.b;
    }
    for (var turn = 1u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= led.rank) {
            break;
        }
        let c = led_column(led, k);
        sum += z_of(led.z_at + k) * c.scale * c.b;
    }
    return sum;
}
