/** The edge of a column, which is dragged to resize it; `column_settings` keeps the width. */

interface Props {
  width: number;
  onResize: (width: number) => void;
}

export function Handle({ width, onResize }: Props) {
  return (
    <span
      class="handle"
      aria-hidden="true"
      draggable={false}
      onClick={(event) => event.stopPropagation()}
      onDblClick={(event) => event.stopPropagation()}
      onPointerDown={(event) => {
        event.preventDefault();
        event.stopPropagation();
        const from = event.clientX;
        const element = event.currentTarget;
        element.setPointerCapture(event.pointerId);
        const follow = (moved: PointerEvent) => onResize(width + moved.clientX - from);
        element.addEventListener("pointermove", follow);
        element.addEventListener("pointerup", () => element.removeEventListener("pointermove", follow), { once: true });
      }}
    />
  );
}
