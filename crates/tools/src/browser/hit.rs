//! What a click at a place of a page would reach: an element may be covered by another one.

use max_team_core::limits::BROWSER_FRAMES_MAX;
use serde_json::{Value, json};

use super::act::{Done, Tab, refused, value};
use super::devtools::{DevToolsError, lock};
use crate::text::{clip, visible};

/// Bytes of a covering element that are told.
const COVER_BYTES_MAX: usize = 160;

/// Whether a click on `hit` is one on this element: it lies within it, around it, or in its label. Else `hit` in words.
const REACHES: &str = "function(hit) { const box = this.nodeType === 1 ? this : this.parentElement; \
                       const above = part => part.assignedSlot || part.parentNode || part.host; \
                       const holds = (outer, inner) => { for (let part = inner; part; part = above(part)) if (part === outer) return true; \
                       return false; }; \
                       if (holds(box, hit) || holds(hit, box)) return ''; \
                       const label = hit.closest && hit.closest('label'); if (label && label.control === box) return ''; \
                       if (box.labels && [...box.labels].some(label => holds(label, hit))) return ''; \
                       const words = (hit.innerText || hit.getAttribute('aria-label') || '').trim().split(/\\s+/).join(' '); \
                       return '<' + hit.localName + (hit.id ? ' id=' + hit.id : '') + '>' + (words ? ' \"' + words.slice(0, 80) + '\"' : ''); }";
/// Brings an element away from what sticks to the edges of the window.
const CENTRE: &str = "function() { (this.scrollIntoView ? this : this.parentElement)\
                      .scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' }); }";

impl Tab {
    /// A place of an element, like the given one, where a click reaches it; an error if another element is on top of it.
    pub(super) async fn uncovered(&self, node: i64, place: (f64, f64)) -> Done<(f64, f64)> {
        if self.cover(node, place).await?.is_none() {
            return Ok(place);
        }
        self.function(node, CENTRE, &[]).await?;
        let place = self.middle(node).await?;
        match self.cover(node, place).await? {
            None => Ok(place),
            Some(cover) => refused(format!(
                "the element is covered by {cover}, which would get the click; close that first, or use it instead"
            )),
        }
    }

    /// What covers an element at a place of the window, in words.
    async fn cover(&self, node: i64, (x, y): (f64, f64)) -> Done<Option<String>> {
        let metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let scrolled = |name: &str| metrics.pointer(name).and_then(Value::as_f64).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "a place on a page, in pixels")]
        let pixel = |at: f64| at as i64;
        let (left, top) = (scrolled("/cssLayoutViewport/pageX"), scrolled("/cssLayoutViewport/pageY"));
        let place = json!({ "x": pixel(x + left), "y": pixel(y + top) });
        // Beside the window nothing is hit, and nothing can be said.
        let Ok(hit) = self.call("DOM.getNodeForLocation", place).await else { return Ok(None) };
        let (Some(mut hit), Some(mut frame)) = (
            hit.get("backendNodeId").and_then(Value::as_i64),
            hit.get("frameId").and_then(Value::as_str).map(str::to_owned),
        ) else {
            return Ok(None);
        };
        // An element and what is hit may lie in different frames: then the frame's own element is what is hit.
        for _ in 0..BROWSER_FRAMES_MAX {
            match self.compare(node, hit).await {
                Ok(words) if words.is_empty() => return Ok(None),
                Ok(words) => return Ok(Some(self.named(hit, &words))),
                Err(DevToolsError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
            let Some(above) = self.frame_above(&frame).await? else { break };
            let owner = self.call("DOM.getFrameOwner", json!({ "frameId": frame })).await?;
            let Some(owner) = owner.get("backendNodeId").and_then(Value::as_i64) else { break };
            (hit, frame) = (owner, above);
        }
        Ok(Some(self.named(hit, "an element of the page around its frame")))
    }

    /// Empty if a click on `hit` is one on the element; an error if they lie in different frames.
    async fn compare(&self, node: i64, hit: i64) -> Done<String> {
        let object = |found: Value| found.pointer("/object/objectId").cloned().unwrap_or_default();
        let (own, other) = tokio::join!(
            self.call("DOM.resolveNode", json!({ "backendNodeId": node })),
            self.call("DOM.resolveNode", json!({ "backendNodeId": hit })),
        );
        let (own, other) = (object(own?), object(other?));
        let call = json!({
            "objectId": own, "functionDeclaration": REACHES, "arguments": [{ "objectId": other }], "returnByValue": true,
        });
        let answer = value(&self.call("Runtime.callFunctionOn", call).await?)?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    /// The frame that holds a frame.
    async fn frame_above(&self, frame: &str) -> Done<Option<String>> {
        let tree = self.call("Page.getFrameTree", json!({})).await?;
        Ok(parent(tree.get("frameTree").unwrap_or(&Value::Null), frame))
    }

    fn named(&self, hit: i64, words: &str) -> String {
        let words = visible(&clip(words, COVER_BYTES_MAX));
        match lock(&self.page.state).refs.known(hit) {
            Some(reference) => format!("[e{reference}] `{words}`"),
            None => format!("`{words}`"),
        }
    }
}

/// The parent of a frame, by Chromium's names for them.
fn parent(tree: &Value, frame: &str) -> Option<String> {
    if tree.pointer("/frame/id").and_then(Value::as_str) == Some(frame) {
        return tree.pointer("/frame/parentId").and_then(Value::as_str).map(str::to_owned);
    }
    tree.get("childFrames").and_then(Value::as_array)?.iter().find_map(|child| parent(child, frame))
}
