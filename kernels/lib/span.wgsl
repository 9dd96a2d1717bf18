// span - which positions a query sees.
// First of the positions that the query at position `last` sees: all, or the newest `window`.
fn first_seen(last : u32, window : u32) -> u32 {
    if (window != 0u && last >= window) {
        return last - window + 1u;
    }
    return 0u;
}
