// focus - refs that give a new element the focus. One function each, so that it is called when the
// element comes and not whenever it is drawn again: what somebody does meanwhile is left alone.

export const focused = (element: HTMLElement | null): void => element?.focus();

export const selected = (field: HTMLInputElement | null): void => {
  field?.focus();
  field?.select();
};
