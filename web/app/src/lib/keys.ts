// keys - what a key press means, where browsers differ.

/** The press belongs to an input method. Safari ends the composition before the press that ended
 *  it, which has this code alone. */
export const isComposing = (e: KeyboardEvent): boolean => e.isComposing || e.keyCode === 229;
