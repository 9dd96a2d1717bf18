// three_rows - the products of a team's R rows with the held row, where the teams of up to three matrices follow each other. Needs
// lib/three_weights, lib/four_rows, lib/four_from, third_rows() and Params with rows, rows2 and rows3.
override MATRICES : u32 = 3u; // so many there are: no code for more

const NO_UNIT : u32 = 0x7fffffffu; // a lane past the end of every row

struct TeamRows {
    first : u32,     // row of the matrix `which`
    sum : vec4<f32>, // this lane's part
}

fn n_teams() -> vec3<u32> {
    return (vec3<u32>(p.rows, p.rows2, p.rows3) + vec3<u32>(R - 1u)) / vec3<u32>(R);
}

fn three_rows(team : u32, lane : u32) -> TeamRows {
    let ends = n_teams();
    let ones = team < ends.x;
    let twos = !ones && team < ends.x + ends.y;
    let first = R * (team - select(select(ends.x + ends.y, ends.x, twos), 0u, ones));
    // One loop after the other, two of them without a unit: so `which` is a number that the compiler sees, and no
    // load has to choose or to wait for a branch.
    which = 0u;
    var sum = four_rows(four_from(first, p.rows), 0u, select(NO_UNIT, lane, ones));
    if (MATRICES > 1u) {
        which = 1u;
        sum += four_rows(four_from(first, p.rows2), 0u, select(NO_UNIT, lane, twos));
    }
    if (MATRICES > 2u) {
        which = 2u;
        sum += third_rows(four_from(first, p.rows3), 0u, select(lane, NO_UNIT, ones || twos));
    }
    which = select(select(2u, 1u, twos), 0u, ones);
    return TeamRows(first, sum);
}

// Of `which`.
fn of_three(first : u32, second : u32, third : u32) -> u32 {
    return select(select(third, second, which == 1u), first, which == 0u);
}
