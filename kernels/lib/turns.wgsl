// turns - more turns than any loop takes. Tint adds a counter of 64 bits to every loop whose end it cannot see, which costs several
// instructions a turn: loops that are short and run often are written as
//     for (var turn = 0u; turn < MOST_TURNS; turn++) { ... if (past the end) { break; } ... }
const MOST_TURNS : u32 = 0x10000u;
