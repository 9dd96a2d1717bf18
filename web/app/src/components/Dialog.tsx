// Dialog - a modal of the platform: it traps the focus, closes with Escape and gives the focus
// back.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './Icon';

export function Dialog({
  title, onClose, children,
}: { title: string; onClose(): void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={onClose}
      onClick={(e) => e.target === element.current && onClose()}>
      <div class="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <button class="icon-button" type="button" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
