// grid - more than 65,535 workgroups: the host spreads them over x and y.
fn flat_group(wid : vec3<u32>, num : vec3<u32>) -> u32 {
    return wid.x + wid.y * num.x;
}

// Workgroups that follow each other, `per` to a row.
struct Turn {
    row : u32,
    at : u32, // in the row
}

// One row, as in decode, needs no division.
fn turn_of(group : u32, per : u32) -> Turn {
    if (group < per) {
        return Turn(0u, group);
    }
    return Turn(group / per, group % per);
}

// How many a row has where all rows have the same.
fn groups_a_row(num : vec3<u32>, rows : u32) -> u32 {
    let all = num.x * num.y;
    if (rows == 1u) {
        return all;
    }
    return all / rows;
}
