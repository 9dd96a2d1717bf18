// two_b - where lib/gate_up_lora reads B: from the buffer b, or b2.
fn b_word(i : u32) -> f32 {
    if (second) {
        return b2[i];
    }
    return b[i];
}
