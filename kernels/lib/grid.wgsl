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

// Which of n pieces of a matrix the i-th workgroup takes: those that begin together are far from each other, so that each part of a
// device goes on where it has been. A large model has more memory than a device keeps translated addresses of, and each that
// it must look up again costs time. So many places at once as large devices have processors.
const APART : u32 = 132u;
fn apart(i : u32, n : u32) -> u32 {
    let place = i % APART;
    return place * (n / APART) + min(place, n % APART) + i / APART;
}
