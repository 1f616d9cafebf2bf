"""Takes the documentation's screenshots: `make screenshots`."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from localcluster import LocalCluster, Pods
from localcluster.demo import Demo
from tests.browser import launch_stage, line_stage, policy_stage, pools, use_stage
from tests.browser.states import NAMESPACE, Scene, a_hub

IMAGES = Path(__file__).parent / "images"
WINDOW = {"width": 1000, "height": 600}
PHONE = {"width": 390, "height": 844}
CARDS = ".gpuspawner[data-live]"
PROFILES = ".gpuspawner-profiles[data-live]"
SETTLED = """() =>
  [...document.querySelectorAll(".gpuspawner[data-live] .gpuspawner-answer")]
    .every((it) => it.dataset.decision)
"""
"""The form has its answer."""
A_NODE_COMES = 90_000
"""Milliseconds, at most, until the demo's autoscaler has added a node and the server runs."""


def main() -> None:
    """Take all screenshots again."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CHROMIUM"],
            args=["--no-sandbox", "--disable-background-networking"],
        )
        with Demo(Path(folder) / "demo", port=0) as demo:
            take_the_demo(browser, demo.url)
        take_the_states(browser, Path(folder))
        take_the_pools(browser, Path(folder))
        take_the_policies(browser, Path(folder))
        take_the_launches(browser, Path(folder))
        take_the_line(browser, Path(folder))
        take_the_gpus(browser, Path(folder))


def take_the_demo(browser: Browser, url: str) -> None:
    """Take the form and two refusals, and the page of a user who waits for a new node."""
    alice, bob = log_in(window(browser), url, "alice"), log_in(window(browser), url, "bob")
    in_both_colours(alice, "form")
    start(alice, "NVIDIA Tesla T4")
    alice.wait_for_url("**/lab*", timeout=60_000)
    start(bob, "NVIDIA Tesla T4")
    picture_of_the_refusal(bob, "refusal")
    in_both_colours(bob, "refusal")
    dave = log_in(window(browser, theme="dark"), url, "dave")
    start(dave, "NVIDIA L4")
    dave.locator("#progress-details").evaluate("(log) => { log.open = true; }")
    triggered = dave.get_by_text("pod triggered scale-up").first
    triggered.wait_for(state="attached", timeout=A_NODE_COMES)
    dave.locator("#progress-log details").evaluate_all(
        "(texts) => texts.forEach((text) => { text.open = true; })"
    )
    picture(dave, "pool-waiting")
    dave.wait_for_url("**/lab*", timeout=A_NODE_COMES)
    erin = log_in(window(browser), url, "erin")
    start(erin, "NVIDIA L4")
    picture_of_the_refusal(erin, "pool-at-maximum")


def take_the_states(browser: Browser, folder: Path) -> None:
    """Take the form with an accelerator in every state: light, dark and on a phone."""
    (folder / "hub").mkdir()
    with LocalCluster(folder / "cluster", pods=Pods.REPORT) as cluster:
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        Scene(cluster, NAMESPACE).set()
        with a_hub(cluster, folder / "hub", cluster.kubeconfig) as hub:
            hub.until_it_sees_the_cluster()
            picture(log_in(window(browser), hub.url, "ann"), "states")
            picture(log_in(window(browser, theme="dark"), hub.url, "ann"), "states-dark")
            phone = log_in(window(browser, PHONE), hub.url, "ann")
            start(phone, "NVIDIA T4")
            picture_of_the_refusal(phone, "refusal-phone")


def take_the_pools(browser: Browser, folder: Path) -> None:
    """Take the two kinds of form with pools at zero, growing, grown and at their maximum."""
    kinds = (("pools", pools.ACCELERATORS, CARDS), ("pools-profiles", pools.PROFILES, PROFILES))
    with (
        LocalCluster(folder / "growing", pods=Pods.REPORT) as cluster,
        pools.growing(cluster),
    ):
        for name, configuration, form in kinds:
            with pools.a_hub_of_pools(cluster, folder / name, configuration) as hub:
                for theme, suffix in (("light", ""), ("dark", "-dark")):
                    page = log_in(window(browser, theme=theme), hub.url, "ann", form)
                    picture(page, f"{name}{suffix}")


def take_the_policies(browser: Browser, folder: Path) -> None:
    """Take what policies leave, two denials, and the announcement of a lifetime's end."""
    with (
        LocalCluster(folder / "limited", pods=Pods.RUN) as cluster,
        policy_stage.a_hub_with_policies(cluster, folder / "policies") as hub,
    ):
        policy_stage.give_ann_two_of_four(hub)
        policy_stage.use_up_the_share(hub)
        policy_stage.give(hub, "kim", "train")
        picture(log_in(window(browser), hub.url, "ann"), "policies")
        ann = log_in(window(browser, theme="dark"), hub.url, "ann")
        start(ann, "NVIDIA A100")
        picture_of_the_refusal(ann, "policies-denied-dark")
        cleo = log_in(window(browser, PHONE), hub.url, "cleo")
        cleo.get_by_label("Number of GPUs").select_option("2")
        start(cleo, "NVIDIA T4")
        picture_of_the_refusal(cleo, "policies-share-phone")
        kim = log_in(window(browser), hub.url, "kim")
        kim.goto(f"{hub.url}/hub/home")
        picture(kim, "policies-lifetime")


def take_the_launches(browser: Browser, folder: Path) -> None:
    """Take a start with a hitch, and one that failed, with what Kubernetes says of each."""
    with (
        LocalCluster(folder / "launching", pods=Pods.RUN) as cluster,
        launch_stage.a_hub_of_launches(cluster, folder / "launches") as hub,
    ):
        ann = log_in(window(browser, theme="dark"), hub.url, "ann", "#spawn_form")
        launch_stage.follow(ann, folder / "launches", "hitch")
        ann.get_by_text("Event log").click()
        tried = ann.locator("#progress-log .progress-log-event", has_text="Still trying")
        tried.get_by_text("What Kubernetes says").click()
        picture(ann, "launch-hitch-dark")
        bob = log_in(window(browser), hub.url, "bob", "#spawn_form")
        launch_stage.follow(bob, folder / "launches", "crash")
        bob.locator("#progress-bar.bg-danger").wait_for(timeout=60_000)
        bob.locator("#progress-message summary").click()
        bob.wait_for_timeout(700)  # until the bar is at its end
        picture(bob, "launch-failed")


def take_the_line(browser: Browser, folder: Path) -> None:
    """Take a form on which one can wait in line, and both pages of people who do."""
    with (
        LocalCluster(folder / "waiting", pods=Pods.RUN) as cluster,
        line_stage.a_hub_with_a_line(cluster, folder / "line") as hub,
    ):
        line_stage.fill(hub, accelerator="a100")
        carol = log_in(window(browser), hub.url, "carol")
        start(carol, "NVIDIA A100")
        picture_of_the_refusal(carol, "line-offered")
        line_stage.wait_in_line(carol)
        dave = log_in(window(browser), hub.url, "dave")
        start(dave, "NVIDIA A100")
        line_stage.wait_in_line(dave)
        in_both_colours(dave, "line-waiting")
        erin = log_in(window(browser, PHONE), hub.url, "erin")
        start(erin, "NVIDIA A100")
        line_stage.wait_in_line(erin)
        erin.get_by_role("link", name=line_stage.LEAVE).click()
        erin.locator(line_stage.PLACE).wait_for()
        picture(erin, "line-page-phone")


def take_the_gpus(browser: Browser, folder: Path) -> None:
    """Take the page of GPUs as administrators see it, and as everybody else does on a phone."""
    with (
        LocalCluster(folder / "used", pods=Pods.RUN) as cluster,
        use_stage.a_hub_in_use(cluster, folder / "use") as hub,
    ):
        admin = log_in(window(browser), hub.url, "admin")
        use_stage.open_the_page(admin, hub)
        in_both_colours(admin, "gpus")
        use_stage.ask_about_a_course(admin)
        in_both_colours(admin, "gpus-capacity")
        eve = log_in(window(browser, PHONE), hub.url, "eve")
        use_stage.open_the_page(eve, hub)
        picture(eve, "gpus-phone")


def window(
    browser: Browser, size: Mapping[str, int] = WINDOW, theme: str = "light"
) -> BrowserContext:
    """Return a new browser context, so that each user has their own cookies."""
    return browser.new_context(viewport=dict(size), color_scheme=theme, device_scale_factor=1.5)


def log_in(context: BrowserContext, url: str, name: str, form: str = CARDS) -> Page:
    """Log in and return the page with the spawn form, once its script is live."""
    page = context.new_page()
    page.goto(f"{url}/hub/spawn")
    page.fill("#username_input", name)
    page.fill("#password_input", "any")
    page.click("#login_submit")
    page.locator(form).wait_for(state="attached")
    return page


def start(page: Page, accelerator: str) -> None:
    """Choose an accelerator and press the button."""
    page.get_by_role("radio", name=accelerator, exact=True).check()
    page.get_by_role("button", name="Start", exact=True).click()


def picture_of_the_refusal(page: Page, name: str) -> None:
    """Save the form that comes back, once it is live."""
    page.get_by_role("alert").wait_for()
    page.locator(CARDS).wait_for()
    picture(page, name)


def in_both_colours(page: Page, name: str) -> None:
    """Save the page in the hub's light colours, and in its dark ones."""
    for theme, suffix in (("light", ""), ("dark", "-dark")):
        page.emulate_media(color_scheme=theme)
        page.wait_for_timeout(500)  # the colours of links fade
        picture(page, f"{name}{suffix}")


def picture(page: Page, name: str) -> None:
    """Save the whole page as WebP, which has a quarter of the size of PNG."""
    page.wait_for_function(SETTLED)
    whole = page.evaluate(
        """() => {
          const { scrollWidth: width, scrollHeight: height } = document.documentElement;
          return { x: 0, y: 0, width, height, scale: 1 };
        }"""
    )
    settings = {"format": "webp", "quality": 85, "captureBeyondViewport": True, "clip": whole}
    taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", settings)
    (IMAGES / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
