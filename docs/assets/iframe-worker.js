// Browsers give no workers to pages that are opened as files. There a hidden frame does a worker's work, so that the
// search needs no server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      const home = new URL(url, location)
      const inside = this.frame.contentWindow
      const load = (src) => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        Object.assign(script, { src: new URL(src, home).href, onload: resolve, onerror: reject })
        inside.document.body.append(script)
      })
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...sources) => sources.reduce((last, src) => last.then(() => load(src)), Promise.resolve())
      this.ready = load(home)
    }

    postMessage(data) {
      const inside = this.frame.contentWindow
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
