"""A walk through a page by Tab, as a reader without a pointer makes it."""

from playwright.sync_api import Page

from page_rules.script import functions


def keyboard(page: Page) -> list[str]:
    """Controls that Tab does not reach, and those whose focus is not visible."""
    walk = functions(page, "keyboard", "begin", "stop", "replaced")
    names = walk.evaluate("walk => walk.begin()")
    reached: set[int] = set()
    findings = [f"{each['name']} has a tabindex of {each['order']}" for each in names if each["order"] > 0]
    # beyond the controls, a browser stops at regions that scroll
    for _ in range(2 * len(names) + 20):
        page.keyboard.press("Tab")
        stop = walk.evaluate("walk => walk.stop()")
        if stop is None or (stop["number"] in reached and stop["number"] == 0):
            break
        if stop["number"] in reached:
            findings.append(f"Tab returns to {stop['name']} before the end of the page")
            break
        if stop["number"] >= 0:
            reached.add(stop["number"])
        findings += stop["findings"]
    reached |= set(walk.evaluate("walk => walk.replaced()"))
    missed = [each["name"] for number, each in enumerate(names) if number not in reached and not each["composite"]]
    return findings + [f"Tab does not reach {name}" for name in missed]
