/** Shows a picture that Python drew: in a shadow root with its own styles, light or dark as the page is. */

import { useLayoutEffect, useRef } from "preact/hooks";

import { useStore } from "../store";
import { dark } from "../theme";

/** Beside the picture's own style: the page has the paper. */
const PAGE = ":host{display:block}svg{display:block}.isotone-drawing{--paper:transparent}";

const STYLE = /<style>([^<]*)<\/style>/;

export function PythonSvg({ text }: { text: string }) {
  const host = useRef<HTMLDivElement>(null);
  const isDark = useStore(dark);
  useLayoutEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    // The policy of the page forbids the element, also in what is only parsed.
    const [, style = ""] = STYLE.exec(text) ?? [];
    const picture = new DOMParser().parseFromString(text.replace(STYLE, ""), "image/svg+xml").documentElement;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style + PAGE);
    for (const rule of sheet.cssRules) {
      if (rule instanceof CSSMediaRule) rule.media.mediaText = isDark ? "all" : "not all";
    }
    root.adoptedStyleSheets = [sheet];
    root.replaceChildren(document.importNode(picture, true));
  }, [text, isDark]);
  return <div class="python-svg" ref={host} />;
}
