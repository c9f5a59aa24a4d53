/* A page that was opened as a file may start no worker, so its search runs in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // As between threads: a copy, and later.
      const deliver = (target, data) => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => target.dispatchEvent(event));
      };
      inside.postMessage = (data) => deliver(this, data);
      this.addEventListener("message", (event) => this.onmessage?.(event));
      const script = inside.document.createElement("script");
      script.src = url;
      const ready = new Promise((resolve) => { script.onload = resolve; });
      inside.document.body.append(script);
      this.postMessage = (data) => ready.then(() => deliver(inside, data));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
