// within - a wait that ends: for what may never answer, such as a dying disk.

/** Undefined where it takes longer. */
export const within = <T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> =>
  Promise.race([work, new Promise<undefined>((resolve) => setTimeout(resolve, milliseconds))]);
