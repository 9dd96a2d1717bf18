// apart - which of n pieces of a matrix the i-th workgroup takes: those that begin together are far from each other, so that each
// part of a device goes on where it has been. A large model has more memory than a device keeps translated addresses of, and each
// that it must look up again costs time.
const PLACES : u32 = 132u; // at once: so many processors has a large device

fn apart(i : u32, n : u32) -> u32 {
    let place = i % PLACES;
    return place * (n / PLACES) + min(place, n % PLACES) + i / PLACES;
}
