"""Faults of a page in a browser that has opened it, a line of text each.

From outside the page: its network requests, its errors, its console. From inside: text alternatives, the order of
headings, targets of links, contrast, and whether the page itself scrolls sideways. The contrast is WCAG 2.2's
(https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio), of the computed colours. Left out: the truth of the page's content.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.browser.chromium import Chromium

CONTRAST_MIN = 4.5
"""Least contrast of body text, by WCAG's level AA."""


@dataclass(frozen=True, slots=True)
class View:
    """A way to look at the page."""

    width: int
    """Size in CSS pixels."""
    dark: bool = False
    media: str = "screen"


def faults(browser: Chromium, page: Path, view: View) -> list[str]:
    """Opens the page and gives its faults. Blocks until the page is loaded and its pictures are decoded."""
    size = {"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": view.width < 600}
    scheme = {"name": "prefers-color-scheme", "value": "dark" if view.dark else "light"}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.call("Emulation.setEmulatedMedia", media=view.media, features=[scheme])
    browser.events.clear()
    browser.call("Page.navigate", url=page.as_uri())
    browser.wait_for("Page.loadEventFired")
    inside = browser.evaluate(f"({_INSIDE})({view.width}, {CONTRAST_MIN})")
    return [*_outside(browser, page), *cast(list[str], inside)]


def _outside(browser: Chromium, page: Path) -> Iterator[str]:
    asked: dict[str, str] = {}
    for event in browser.events:
        given = event.get("params", {})
        match event["method"]:
            case "Network.requestWillBeSent":
                address = given["request"]["url"]
                asked[given["requestId"]] = address[:80]
                if address != page.as_uri() and not address.startswith("data:"):
                    yield f"a request to {address}"
            case "Network.loadingFailed":
                yield f"not loaded: {asked.get(given['requestId'])}"
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "assert", "warning"):
                yield f"console: {[part.get('value') for part in given['args']]}"
            case "Runtime.exceptionThrown":
                yield f"exception: {given['exceptionDetails'].get('exception', {}).get('description')}"
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                yield f"log: {given['entry']['text']}"


_INSIDE = r"""async (width, contrastMin) => {
  const found = [];
  const brief = (element) => (element.id ? `#${element.id} ` : "") + element.textContent.trim().slice(0, 40);
  await document.fonts.ready;

  for (const image of document.images) {
    if (!image.alt.trim()) found.push("no text alternative: an img");
    await image.decode().catch(() => found.push(`not shown: ${image.alt.slice(0, 40)}`));
  }
  for (const drawing of document.querySelectorAll("svg:not([aria-hidden=true]), canvas, object, video")) {
    if (!drawing.ariaLabel?.trim()) found.push(`no text alternative: a ${drawing.tagName}`);
  }
  for (const figure of document.querySelectorAll("figure")) {
    const named = figure.ariaLabel?.trim() || figure.querySelector("figcaption")?.textContent.trim();
    if (!named) found.push("no text alternative: a figure without caption");
  }

  const scrolls = (element) => /auto|scroll|hidden/.test(getComputedStyle(element).overflowX);
  const boxed = (element) => element && element !== document.body && (scrolls(element) || boxed(element.parentElement));
  if (innerWidth !== width) found.push(`sideways: laid out ${innerWidth} wide`);
  if (document.scrollingElement.scrollWidth > width) {
    found.push(`sideways: the page is ${document.scrollingElement.scrollWidth} wide`);
  }
  for (const element of document.body.querySelectorAll("*")) {
    if (element.getBoundingClientRect().right > width + 0.5 && !boxed(element.parentElement) && !scrolls(element)) {
      found.push(`sideways: ${element.tagName} ${brief(element)}`);
    }
    if (element.scrollWidth > element.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(element).overflowX)) {
      if (element.tabIndex !== 0 || !element.ariaLabel) found.push(`scrolls, not by keyboard: ${brief(element)}`);
    }
  }

  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) found.push(`heading out of order: ${heading.tagName} ${brief(heading)}`);
    level = own;
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.title.trim() || !document.documentElement.lang) found.push("no title, or no language");

  const names = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const name of new Set(names)) {
    if (names.filter((other) => other === name).length > 1) found.push(`two elements are #${name}`);
  }
  for (const link of document.querySelectorAll("a[href^='#']")) {
    const target = decodeURIComponent(link.getAttribute("href").slice(1));
    if (!document.getElementById(target)) found.push(`link without target: #${target}`);
  }

  const parts = (colour) => [...colour.matchAll(/[\d.]+/g)].map(Number);
  const over = ([r, g, b, alpha = 1], below) => [r, g, b].map((part, i) => part * alpha + below[i] * (1 - alpha));
  const behind = (element) => element
    ? over(parts(getComputedStyle(element).backgroundColor), behind(element.parentElement)) : [255, 255, 255];
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const below = behind(element);
    const [light, dark] = [over(parts(getComputedStyle(element).color), below), below].map(luminance)
      .sort((one, other) => other - one);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < contrastMin) found.push(`contrast ${contrast.toFixed(2)}: ${brief(element)}`);
  }
  return found;
}"""
