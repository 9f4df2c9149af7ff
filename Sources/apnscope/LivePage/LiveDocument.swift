import Reporting

/// A report's page with what makes it follow a run: a line above it, and a script.
enum LiveDocument {
  /// - Parameters:
  ///   - version: which of the published pages it is.
  ///   - isLast: whether the run has ended.
  ///   - key: what the button that ends the run sends; `nil`: there is no button.
  static func html(_ page: Page, version: Int, isLast: Bool, key: String?) -> String {
    let button = isLast || key == nil ? "" : #" <button type="button" id="stop">End the run</button>"#
    let sentence = isLast ? "The run has ended." : "The run goes on; this page follows it."
    let line =
      #"<p id="live" role="status" data-version="\#(version)" data-last="\#(isLast)">\#(sentence)\#(button)</p>"#
    var html = page.html
    // The page may ask its own server, and nobody else.
    if let range = html.firstRange(of: "default-src 'none';") {
      html.insert(contentsOf: " connect-src 'self';", at: range.upperBound)
    }
    if let range = html.firstRange(of: "<main>") { html.insert(contentsOf: "\n" + line, at: range.upperBound) }
    if let range = html.firstRange(of: "</head>") { html.insert(contentsOf: style + "\n", at: range.lowerBound) }
    if let range = html.firstRange(of: "</body>") {
      html.insert(contentsOf: script.replacing("KEY", with: key ?? "") + "\n", at: range.lowerBound)
    }
    return html
  }

  /// Before anything is known.
  static let empty = html(
    Page(title: "The run begins", sections: [], footer: "Made by apnscope."), version: 0, isLast: false, key: nil)

  private static let style = """
    <style>#live{color:var(--soft);font-size:.85rem;margin:0 0 14px}#live button{font:inherit;margin-left:.6em;padding:.1em .7em;min-height:2em}</style>
    """

  /// Asks for changes, and replaces the sections that differ; what a reader has unfolded stays so. Sections that a script of
  /// the page has prepared are prepared again.
  private static let script = """
    <script>
    (() => {
    const key = "KEY";
    let version = +document.getElementById("live").dataset.version;
    const arm = () => {
      const button = document.getElementById("stop");
      if (button) button.onclick = () => { button.disabled = true; fetch("stop", {method: "POST", body: key}); };
    };
    const say = text => { document.getElementById("live").textContent = text; };
    async function update() {
      const text = await (await fetch("./", {cache: "no-store"})).text();
      const next = new DOMParser().parseFromString(text, "text/html");
      document.title = next.title;
      const shown = document.querySelector("main"), parts = [...next.querySelector("main").children];
      const open = new Set([...shown.querySelectorAll("details[open]>summary")].map(s => s.textContent));
      for (const summary of next.querySelectorAll("details>summary"))
        if (open.has(summary.textContent)) summary.parentNode.open = true;
      parts.forEach((part, place) => {
        const old = shown.children[place];
        if (!old) shown.append(part);
        else if (old.dataset.source !== part.outerHTML) {
          part.dataset.source = part.outerHTML;
          old.replaceWith(part);
          document.dispatchEvent(new CustomEvent("apnscope:section", {detail: part}));
        }
      });
      while (shown.children.length > parts.length) shown.lastChild.remove();
      arm();
      const live = document.getElementById("live");
      version = +live.dataset.version;
      return live.dataset.last === "true";
    }
    function listen() {
      const events = new EventSource("events?after=" + version);
      let failures = 0;
      events.onopen = () => { failures = 0; };
      events.onmessage = async event => {
        events.close();
        try { if (await update()) return; } catch { return say("The run has ended, or cannot be reached."); }
        listen();
      };
      events.onerror = () => { if (++failures > 6) { events.close(); say("The run has ended, or cannot be reached."); } };
    }
    arm();
    if (document.getElementById("live").dataset.last !== "true") listen();
    })();
    </script>
    """
}
